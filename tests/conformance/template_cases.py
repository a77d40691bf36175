"""Templates that ferry and jinja2 are compared on: expressions, statements, and what is refused."""

VARIABLES = {
    "names": ["Ann", "bob", "Cid", "ann"],
    "table": {"b": 1, "a": [1, 2], "C": None, "items": "shadowed", "é": "ü"},
    "number": 41,
    "words": "the quick  brown\tfox\n",
    "text": "L'été: <a href=\"x\">naïve</a> & 世界🙂\r\nend",
    "people": [
        {"name": "Ann", "age": 30, "tags": ["x"], "address": {"city": "Rome"}},
        {"name": "bob", "age": 25, "tags": [], "address": {"city": "Oslo"}},
        {"name": "Cid", "age": 30, "tags": ["y", "z"], "address": {"city": "rome"}},
    ],
    "deep": {"a": {"b": [{"c": [1, {"d": "e"}]}]}},
    "flag": True,
    "empty": "",
    "nil": None,
    "real": 2.5,
}

EXPRESSIONS = """
1
-1
+1
1_000
0x1F
0b101
0o17
1.5
1e3
1E-5
1.5e300
1e16
1e15
123456789012345680.0
0.1 + 0.2
1/3
100.0
-0.0
1e-4
1e-5
2.5e-10
5e-324
1.7976931348623157e308
9223372036854775807
'a' 'b' "c"
'it\\'s'
"tab\\tnew\\nline\\\\"
'\\x41\\u00e9\\U0001F642\\101\\q'
'a' + 'b'
'a' ~ 1 ~ none ~ true ~ 1.0
'ab' * 3
3 * 'ab'
'ab' * -1
[1, 2] * 2
[1] + [2]
(1,) + (2, 3)
[1] + (2,)
1 + 'a'
'a' + 1
1 + none
nothing + 1
7 // 2
-7 // 2
7 % 3
-7 % 3
7 % -3
7.5 % 2
-7.5 // 2
7 / 2
6 / 2
1 / 0
1 // 0
1 % 0
2 ** 10
2 ** -1
2 ** 0.5
-2 ** 2
0 ** 0
2 ** 3 ** 2
1 + 2 * 3
(1 + 2) * 3
1 - 2 - 3
2 * 3 % 4
1 ~ 2 + 3
1 + 2 ~ 3
1 ~ 2 * 3
not true
not not 1
not nothing
true and false
1 and 2
0 or 'x'
none or false
'' and 1
1 < 2
1 < 2 < 3
1 < 3 < 2
1 == 1.0
true == 1
'a' == 'a'
'a' < 'b'
'é' > 'z'
[1, 2] < [1, 3]
[1, 2] == [1, 2]
(1, 2) == [1, 2]
{'a': 1} == {'a': 1.0}
{'a': 1, 'b': 2} == {'b': 2, 'a': 1}
1 < 'a'
none < 1
nothing < 1
none == nothing
nothing == missing
1 != 2
'a' in 'abc'
'' in 'abc'
1 in [1, 2]
'a' not in 'abc'
'b' in table
'zz' in table
1 in 'abc'
1 in nothing
nothing in 'abc'
none in [none]
[1] in [[1], 2]
1 in 1
'x' if true else 'y'
'x' if false else 'y'
'x' if false
'a' if false else 'b' if false else 'c'
('x' if false) is defined
true
True
false
False
none
None
[]
[1, 'a', none, true, 2.0]
()
(1,)
(1, 2)
{}
{'a': 1, 'b': {'c': [1]}}
{1: 2, none: 3, true: 4, 1.5: 6, (1, 2): 7}
{[1]: 2}
{'a': 1, 'a': 2}
['it\\'s', "a\\"b", 'both \\' and "', '\\n\\t\\r\\\\', '\\x00\\x7f', 'é', '\\u200b\\ue000', '🙂']
names
table
people
deep
names[0]
names[-1]
names[10]
names[10].x
names['x']
names.x
names.0
names[1:]
names[:-1]
names[::2]
names[::-1]
names[-2:]
names[5:]
names[3:1]
names[3:0:-1]
names[3:0:-2]
names[:100]
names[-100:2]
names[::0]
names['a':]
names[none:none]
'abcdé🙂'[1]
'abcdé🙂'[-1]
'abcdé🙂'[4:]
'abcdé🙂'[::-1]
'abcdé🙂'[-2:]
'abc'[9]
'abc'[1:2]
'abc'[1:1]
(1, 2, 3)[1:]
(1, 2, 3)[0]
table.b
table['b']
table.items
table['items']
table.items()
table.items() | list
table.keys() | list
table.values() | list
table.get('b')
table.get('zz')
table.get('zz', 'd')
table.get()
table.zz
table.zz.y
table['zz']['y']
table.zz is defined
table.C is none
table.copy()
table.pop('b')
table.update({})
names.append(1)
names.append is defined
names.count('Ann')
names.index('bob')
names.index('zz')
deep.a.b[0].c[1].d
deep['a']['b'][0]['c'][1]['d']
nothing
nothing.x
nothing['x']
nothing[0]
nothing()
none.x
none['x']
number.x
'abc'.x
number()
'  a b '.strip()
'xxaxx'.strip('x')
'xyax'.strip('yx')
'xxaxx'.lstrip('x')
'xxaxx'.rstrip('x')
' \\u00a0\\u2003a\\x1c'.strip() ~ '|'
'a,b,,c'.split(',')
'a,b,,c'.split(',', 1)
'a,b,,c'.split(',', maxsplit=2)
'a,b,,c'.rsplit(',', 1)
' a  b c '.split()
' a  b c '.split(none, 1)
' a  b c '.rsplit(none, 1)
'abc'.split('')
'abc'.split('z')
''.split()
''.split(',')
'a\\nb\\r\\nc\\rd'.splitlines()
'a\\nb\\n'.splitlines(true)
'abc'.startswith('a')
'abc'.startswith(('x', 'a'))
'abc'.endswith('c')
'abc'.endswith('')
'abc'.startswith(1)
'abc'.upper()
'ÀÉß'.lower()
'straße ﬁ ŉ'.upper()
'ΟΔΟΣ ΑΣ Σ'.lower()
'İI'.lower()
'hello wORLD'.capitalize()
'ǆabc'.capitalize()
"they're bill's".title()
'hello wORLD-x'.title()
'aXbX'.replace('X', 'y')
'aXbX'.replace('X', 'y', 1)
'abc'.replace('', '-')
'abc'.replace('', '-', 2)
'aaa'.replace('aa', 'b')
'abc'.find('c')
'éac'.find('c')
'abc'.find('z')
'abcabc'.rfind('b')
'abc'.index('z')
'banana'.count('an')
'banana'.count('')
', '.join(['a', 'b'])
', '.join([1])
','.join('abc')
'a-b-c'.partition('-')
'a-b-c'.rpartition('-')
'abc'.partition('-')
'abc'.rpartition('-')
'prefix-x'.removeprefix('prefix-')
'x.txt'.removesuffix('.txt')
'x'.removesuffix('')
'12'.isdigit()
''.isdigit()
'1a'.isdigit()
'ab'.isalpha()
'é世'.isalpha()
'a1'.isalnum()
' \\t'.isspace()
'ab'.islower()
'AB1'.isupper()
'12'.isupper()
'a'.ljust(4) ~ '|'
'a'.rjust(4, '*')
'ab'.center(5, '*')
'abc'.center(6, '*')
'{} {}'.format(1, 'a')
'{0} {1} {0}'.format(1, 'a')
'{a} {{x}}'.format(a=1)
'{} {}'.format(1)
'%s is %d' % ('a', 3)
'%s' % 1
'%5.2f|%03d|%x' % (3.14159, 7, 255)
'100%%' % ()
'%s %s' % ('a',)
'%s' % ('a', 'b')
'%d' % 'a'
'%r' % 'a'
'abc' | upper
5 | upper
none | upper
nothing | upper
'ÀB' | lower
'hello WORLD' | capitalize
'hello wORLD-foo (bar) it\\'s' | title
'  x ' | trim
'xax' | trim('x')
words | trim
'a-b' | replace('-', '+')
'aaa' | replace('a', 'b', 2)
1.5 | replace('.', ',')
123 | string
[1, 'a'] | string
nothing | string
'abc' | length
'é世🙂' | length
names | count
table | length
5 | length
nothing | length
names | first
names | last
[] | first
[] | last
'abc' | first
'abc' | last
table | first
nothing | first
nothing | last
names | join
names | join(', ')
names | join('-', attribute='x')
people | join(', ', attribute='name')
[1, none, 2.5] | join('|')
'abc' | join('.')
nothing | join
nothing | default('d')
nothing | default
'' | default('d')
'' | default('d', true)
'' | default('d', boolean=true)
none | default('d')
nothing.x | default('d')
table.zz | d('q')
'abc' | list
table | list
nothing | list
5 | list
range(3) | list
'42' | int
'42.7' | int
'x' | int
'x' | int(7)
'x' | int(default=7)
' 12 ' | int
'1_000' | int
'ff' | int(0, 16)
'0x1f' | int(0, 16)
3.9 | int
-3.9 | int
none | int
true | int
nothing | int
[1] | int
'1e3' | int
'inf' | int
'2.5' | float
'x' | float
'x' | float(1.5)
3 | float
'inf' | float
'nan' | float
none | float
'1_0.5' | float
-3 | abs
-3.5 | abs
'a' | abs
2.5 | round
3.5 | round
2.675 | round(2)
7 | round
2.1 | round(0, 'ceil')
2.9 | round(method='floor')
2.345 | round(1, 'ceil')
names | sort
names | sort(reverse=true)
names | sort(case_sensitive=true)
[3, 1, 2] | sort
[3, 1.5, true] | sort
[3, 'a'] | sort
people | sort(attribute='age') | map(attribute='name') | join(',')
people | sort(attribute='age,name', reverse=true) | map(attribute='name') | join(',')
people | sort(attribute='address.city') | map(attribute='name') | list
names | unique | list
names | unique(true) | list
people | unique(attribute='age') | map(attribute='name') | list
[1, 1.0, true, 2] | unique | list
names | reverse | list
'abc' | reverse
(1, 2) | reverse | list
table | dictsort
{'b': 2, 'A': 3, 'a': 1} | dictsort
{'b': 2, 'A': 3, 'a': 1} | dictsort(true)
{'b': 2, 'A': 3, 'a': 1} | dictsort(false, 'value')
{'b': 2, 'A': 3, 'a': 1} | dictsort(by='value', reverse=true)
{'b': 2} | dictsort(by='x')
table | items | list
nothing | items | list
[1] | items | list
[1, 2, 3] | sum
people | sum(attribute='age')
people | sum('age', 100)
[] | sum
['a'] | sum
[3, 1, 2] | min
names | max
[] | max
people | max(attribute='age')
people | map(attribute='name') | list
people | map(attribute='address.city') | list
people | map(attribute='tags.0') | list
people | map(attribute='tags.0', default='-') | list
people | map(attribute='zz') | list
[[1, 2], [3]] | map(attribute=0) | list
names | map('upper') | list
names | map('replace', 'n', 'm') | list
names | map('length') | sum
names | map('nofilter') | list
names | map | list
people | selectattr('tags') | map(attribute='name') | list
people | selectattr('age', 'equalto', 30) | map(attribute='name') | list
people | selectattr('age', '>', 25) | list | length
people | selectattr('address.city', 'eq', 'Rome') | list | length
people | rejectattr('tags') | map(attribute='name') | join
people | rejectattr('age', 'eq', 30) | map(attribute='name') | join
people | selectattr('zz', 'defined') | list
people | selectattr | list
[0, 1, '', 'a', none] | select | list
[0, 1, '', 'a', none] | reject | list
[1, 2, 3, 4] | select('even') | list
[1, 2, 3, 4] | reject('odd') | list
[1, 2, 3, 4] | select('divisibleby', 3) | list
names | select('in', ['bob', 'Cid']) | list
names | select('notest') | list
names | map('upper') | first
names | map('upper') | length
names | map('upper') | last
(names | select) and 'true'
([] | select) and 'true'
(names | map('upper')) is iterable
(names | map('upper')) is sequence
'BOB' in (names | map('upper'))
'a\\nb\\n\\nc' | indent
'a\\nb\\n\\nc' | indent(2, true)
'a\\nb\\n\\nc' | indent(2, first=true, blank=true)
'a\\nb' | indent('> ')
'a\\n' | indent ~ '|'
'' | indent ~ '|'
'a\\r\\nb\\x0bc' | indent(1)
text | escape
'<a>' | e
'<a>' | safe
5 | safe
'%s-%s' | format('a', 1)
table | tojson
table | tojson(indent=2)
table | tojson(indent=0)
table | tojson(indent='\t')
table | tojson(sort_keys=true)
table | tojson(separators=(',', ':'))
table | tojson(ensure_ascii=true)
table | tojson(true)
text | tojson
text | tojson(ensure_ascii=true)
'\\x00\\x1f\\x7f\\u2028/<>&\\'"\\\\' | tojson
[1, 1.0, 1e20, 1e-7, true, none, 'x', [], {}, (1, 2)] | tojson
[] | tojson(indent=2)
{'a': [], 'b': {}} | tojson(indent=2)
{1: 2, none: 3, true: 4, 1.5: 5} | tojson
{(1, 2): 3} | tojson
nothing | tojson
[nothing] | tojson
range(2) | tojson
deep | tojson(indent=4)
people | tojson
'inf' | float | tojson
'a' | nosuchfilter
'a' | upper | lower | title
'a' | upper()
'a' | upper(1)
'a' | replace('x')
'a' | default(1, 2, 3)
'a' | trim(nosuch=1)
nothing is defined
nothing is undefined
nothing is not defined
names is defined
nil is none
0 is none
'' is string
names is string
table is mapping
names is mapping
names is iterable
'abc' is iterable
5 is iterable
nothing is iterable
names is sequence
'abc' is sequence
table is sequence
5 is sequence
(1,) is sequence
table.items() is sequence
5 is number
5.5 is number
true is number
'5' is number
true is boolean
1 is boolean
true is true
1 is true
false is false
0 is false
5 is integer
true is integer
5.0 is float
5 is float
'abc' is lower
'ABC' is upper
'aBC' is upper
5 is odd
4 is even
-3 is odd
9 is divisibleby(3)
9 is divisibleby 3
5 is eq 5
5 is eq(5)
5 is equalto 5.0
5 is ne 5
5 is gt 4
5 is ge 5
5 is lt 4
5 is le 5
5 is greaterthan 4
5 is lessthan 4
'a' is in 'abc'
'a' is in(['a'])
'a' is not in ['a']
5 is not none
5 is string or 5 is number
not 5 is string
5 is string is defined
range is callable
5 is callable
'upper' is filter
'nosuch' is filter
'odd' is test
5 is nosuchtest
'x' is eq 'x' and 'y'
names[0] is eq names[0]
number is odd and flag
range(5) | list
range(2, 5) | list
range(5, 0, -2) | list
range(0) | list
range(3)[1]
range(3)[-1]
range(5)[1:3] | list
range(1, 2, 0)
range(10 ** 9)
range('a')
range(3) == range(3)
range(3) | length
3 in range(5)
dict(a=1, b=2)
dict({'a': 1}, b=2)
dict([('a', 1), ('b', 2)])
dict([1])
namespace(a=1).a
namespace({'a': 1}).a
namespace(_a=1).a
namespace().x
namespace() is mapping
raise_exception('no')
strftime_now('%Y')
strftime_now('%d %b %Y')
strftime_now('')
[1, 2, 3,]
{'a': 1,}
(names | first) ~ '!'
names | first ~ '!'
-number | abs
- 5
(1)
((1, 2))
1, 2
names[1 if flag else 0]
{'a': 'b'}['a']
'a'.upper().lower().upper()
{'upper': 1}.upper
flag and not empty
real * 2
number + flag
'a' 'b' | upper
[1, 2][1] + 1
'abc'[1:] | upper
text[2:5]
text | length
text.split('\\n') | length
'%' ~ 5
table is defined and table.b == 1
(names | join(',')).split(',') | last
'a' < 'B'
true + true
'5' * 2
'\\u00e9' == 'é'
'é' | upper | lower
'a\\tb' | tojson
*
1 +
(1
[1, 2
{'a' 1}
'abc
names[
names.
| upper
'a' | 
1 is
x y
@
a = 1
'a' if
""".strip("\n").split("\n")

STATEMENTS = [
    "",
    "\n",
    "a\n",
    "a\n\n",
    "a\r\nb\rc\n",
    "{{ 'a' }}\n{{ 'b' }}\n",
    "a{# comment #}b",
    "a {#- comment -#} b",
    "  {# comment #}\nx",
    "{% if true %}yes{% endif %}",
    "{% if flag %}\n  yes\n{% else %}\n  no\n{% endif %}\nend",
    "  {% if flag %}  \n x {% endif %}  \n y",
    "x  {%- if flag -%}  \n y  {%- endif -%}  z",
    "x\n  {%+ if flag %}y{% endif +%}\nz",
    "x\n   {{- 'y' -}}  \n z",
    "x\n   {{ 'y' }}  \n z",
    "{% if nothing %}a{% elif empty %}b{% elif number > 40 %}c{% else %}d{% endif %}",
    "{% if nothing %}a{% else %}{% if flag %}b{% endif %}c{% endif %}",
    "{% for n in names %}{{ n }},{% endfor %}",
    "{% for n in names %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}"
    "{{ loop.length }}{{ loop.depth }}{{ loop.previtem }}{{ loop.nextitem }};{% endfor %}",
    "{% for n in names %}{{ loop.cycle('odd', 'even') }} {% endfor %}",
    "{% for k, v in table.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for k, v in table | dictsort %}{{ k }}={{ v }};{% endfor %}",
    "{% for k, v in table | items %}{{ k }}{{ v }};{% endfor %}",
    "{% for (a, b), c in [((1, 2), 3)] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    "{% for k in table %}{{ k }}{% endfor %}",
    "{% for c in 'aé🙂' %}{{ c }}.{% endfor %}",
    "{% for n in names if n != 'bob' %}{{ loop.index }}/{{ loop.length }}{{ n }}{% endfor %}",
    "{% for n in names if n == 'zz' %}x{% else %}none{% endfor %}",
    "{% for n in [] %}x{% else %}none{% endfor %}",
    "{% for n in nothing %}x{% else %}none{% endfor %}",
    "{% for i in range(10) %}{% if i == 2 %}{% continue %}{% endif %}{% if i > 4 %}{% break %}{% endif %}{{ i }}{% endfor %}",
    "{% for i in range(3) %}{% for j in range(3) %}{% if j > i %}{% break %}{% endif %}{{ i }}{{ j }} {% endfor %}{% endfor %}",
    "{% for i in range(2) %}{% set outer = loop %}{% for j in range(2) %}{{ outer.index }}{{ loop.index }} {% endfor %}{% endfor %}",
    "{% set x = 1 %}{% for i in range(2) %}{% set x = x + 1 %}{{ x }}{% endfor %}{{ x }}",
    "{% set x = 1 %}{% if true %}{% set x = 2 %}{% endif %}{{ x }}",
    "{% set ns = namespace(x=1, y='a') %}{% for i in range(3) %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}{{ ns.y }}{{ ns['x'] }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set a, b = b, a %}{{ a }}{{ b }}",
    "{% set x = 1, 2 %}{{ x }}",
    "{% set x %}block {{ number }}{% endset %}[{{ x }}]",
    "{% set x | upper | replace('B', 'C') %}block {{ number }}{% endset %}[{{ x }}]",
    "{% set ns = namespace(t='') %}{% set ns.t %}in {{ number }}{% endset %}{{ ns.t }}",
    "{% with a = 1, b = number %}{{ a }}{{ b }}{% set c = 1 %}{% endwith %}{{ a }}{{ c is defined }}",
    "{% macro m(a, b='B', c=none) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }}{{ m(1, 2) }}{{ m(b=3, a=4) }}{{ m() }}{{ m(1, c='x') | upper }}",
    "{% macro m(n) %}{{ n }}{% if n > 0 %},{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(5) }}",
    "{% set g = 'G' %}{% macro m(a) %}{{ g }}{{ a }}{{ number }}{% endmacro %}{% set g = 'H' %}{{ m(1) }}",
    "{% macro m(a, b=a ~ '!') %}{{ b }}{% endmacro %}{{ m('x') }}",
    "{% macro m() %}{% set ns.x = 5 %}{% endmacro %}{% set ns = namespace(x=1) %}{{ m() }}{{ ns.x }}",
    "{%- macro m(a) -%}\n  [{{ a }}]\n{%- endmacro -%}\n{{ m(1) }}\n{{ m(2) }}",
    "{% macro box(t) %}<{{ t }}>{{ caller() }}</{{ t }}>{% endmacro %}{% call box('b') %}body {{ number }}{% endcall %}",
    "{% macro each(l) %}{% for i in l %}{{ caller(i) }}{% endfor %}{% endmacro %}{% call(i) each([1, 2]) %}<{{ i }}>{% endcall %}",
    "{% filter upper %}abc {{ number }} {{ 'x' }}{% endfilter %}",
    "{% filter replace('a', 'b') | upper %}abca{% endfilter %}",
    "{% raw %}{{ not }} {% a %}{% endraw %}",
    "a {%- raw -%} {{ x }} {%- endraw -%} b",
    "  {% raw %}\n{{ x }}\n  {% endraw %}\nb",
    "{% generation %}{{ number }}{% set x = 1 %}{% endgeneration %}{{ x is defined }}",
    "{{ names | map('upper') | list }}{% set it = names | map('upper') %}{{ it | list | length }}{{ it | list | length }}",
    "{% set it = names | select('ne', 'bob') %}{{ 'Cid' in it }}{{ it | list }}",
    "{% for p in people %}{% for t in p.tags %}{{ p.name }}{{ t }} {% endfor %}{% endfor %}",
    "{% for p in people %}{{ p.name if not loop.first else p.name | upper }}{{ ', ' if not loop.last }}{% endfor %}",
    "{% for x in people | selectattr('age', 'gt', 26) | map(attribute='name') %}{{ x }}{{ loop.last }}{% endfor %}",
    "{{ '{{' }}{{ '}}' }}{{ {'a': {'b': 1}} }}{{ {'a': {'b': 1}}.a.b}}",
    "{% if 'a' in names or ('Ann' in names and not (number is odd and number < 0)) %}ok{% endif %}",
    "{% set f = names.index %}{{ f('bob') }}",
    "{% set d = {'f': 1} %}{{ d.f }}{{ d['f'] }}{{ d.get('g', {}).get('h') }}",
    "{% for i in range(3): %}{{ i }}{% endfor %}",
    "{{ dict(people[0], extra=1) }}",
    "{{ namespace(x=[1]).x[0] }}",
    "{% set ns = namespace() %}{% set ns.found = false %}{% if not ns.found %}{% set ns.found = true %}{% endif %}{{ ns.found }}",
    "{% macro args(a) %}{{ a }}{% endmacro %}{{ args(*[1]) }}{{ args(**{'a': 2}) }}",
    "{# a #}{# b -#}  c",
    "{%- for m in messages -%}{{ m.role }}{{ m['content'] }}{%- endfor -%}",
    "{{ messages }}{{ tools }}{{ documents }}{{ add_generation_prompt }}",
    "{{ undefined_thing }}{{ 'x' if undefined_thing }}",
    "\u00a0{%- if true %} é{% endif %}世",
    "a{{ '' }}\n\n{% if true %}\n\nb\n{% endif %}\n\n",
    "{%if true%}a{%endif%}{{1}}{{-2}}",
    "{{ '%s' }} 100% {%- if true -%} % {%- endif -%} }} %}",
    "{ {} { % %} # #} {",
    "{{ names|length>2 }}{{ 5if flag else 6 }}",
]  # fmt: skip

REFUSED = [
    ("{% include 'x' %}", 1, "{% include %} is not supported"),
    ("a\n{% block x %}{% endblock %}", 2, "{% block %} is not supported"),
    ("{% for x in y recursive %}{% endfor %}", 1, "recursive loops are not supported"),
    ("a\n\n{{ x | nosuch }}", 3, 'the filter "nosuch" is not supported'),
    ("{{ x is nosuch }}", 1, 'the test "nosuch" is not supported'),
    ("\n{{ names | map('nosuch') | list }}", 2, 'the filter "nosuch" is not supported'),
    ("{% nosuch %}", 1, 'the tag "nosuch" is not known'),
    ("{% endif %}", 1, 'the tag "endif" is not known, or closes nothing'),
    ("{% if true %}a\n", 1, "the template ends before {% endif %}"),
    ("{% for x in names %}\n{% if x %}{% endfor %}", 2, 'the tag "endfor" is not known, or closes nothing'),
    ("{{ 1 + }}", 1, "expected an expression, found }}"),
    ("{{ (1 }}", 1, "'}' closes nothing"),
    ("{{ 'abc }}", 1, "a string ' has no end"),
    ("{# abc", 1, "a comment {# has no #}"),
    ("{% raw %} abc", 1, "{% raw %} has no {% endraw %}"),
    ("{{ ? }}", 1, "unexpected character '?'"),
    ("{{ 99999999999999999999 }}", 1, "does not fit 64 bits"),
    ("{{ 9223372036854775807 + 1 }}", 1, "an integer does not fit 64 bits"),
    ("{{ '\\N{DASH}' }}", 1, "the escape \\N in a string is not understood"),
    ("{% break %}", 1, "break and continue stand in loops only"),
    ("{% set true = 1 %}", 1, "cannot be assigned to"),
    ("{{ messages[0].text.x }}", 1, "'dict object' has no attribute 'text'"),
    ("{{ nosuch.x }}", 1, "'nosuch' is undefined"),
    ("\n\n{{ raise_exception('Only user and assistant!') }}", 3, "the template refuses this: Only user and assistant!"),
    ("{{ 1 + 'a' }}", 1, "int + str is not defined"),
    ("{{ names.append(1) }}", 1, "would change the object"),
    ("{% set x.y = 1 %}", 1, "cannot set x.y: x is not a namespace"),
    ("{% macro m(a) %}{% endmacro %}\n{{ m(1, 2) }}", 2, "the macro m takes 1 arguments, not 2"),
    ("{% macro m(a) %}{% endmacro %}{{ m(b=2) }}", 1, "the macro m has no parameter b"),
    ("{{ 'a' | replace('x') }}", 1, "replace() needs the argument new"),
    ("{{ 'a' | upper(1) }}", 1, "upper() takes ()"),
    ("{{ " + "(" * 200 + "1" + ")" * 200 + " }}", 1, "nests more than 100 deep"),
    ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", 1, "calls or nests more than"),
    ("{% set l = range(100000) | list %}\n{% for i in l %}{{ -1 in l }}{% endfor %}", 2, "too many steps"),
    ("{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}", 1, "too much memory"),
    ("{{ 'x' * 10 ** 12 }}", 1, "too much memory"),
    ("{% set ns = namespace(x='x') %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}", 1, "too much memory"),
    ("{% for a in names %}{{ loop(a) }}{% endfor %}", 1, "loop is loop, which cannot be called"),
    ("{{ caller() }}", 1, "'caller' is undefined"),
]  # fmt: skip
