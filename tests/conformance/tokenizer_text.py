"""Text for the tests of tokenizers: sentences in many scripts, and strings made up from all of Unicode."""

import random
import unicodedata

SENTENCES = """The quick brown fox jumps over the lazy dog. It's 1,234.56 dollars, isn't it? We'll see!
Voix ambiguë d'un cœur qui, au zéphyr, préfère les jattes de kiwis. L'été à Noël.
Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich. Straße, STRASSE, ẞ.
El pingüino Wenceslao hizo kilómetros bajo exhaustiva lluvia y frío, ¡añoraba a su querido cachorro!
Příliš žluťoučký kůň úpěl ďábelské ódy. Zażółć gęślą jaźń. İstanbul'da ığdır şoför.
Съешь же ещё этих мягких французских булок, да выпей чаю. Їжак, ґанок, ёлка.
Ξεσκεπάζω την ψυχοφθόρα βδελυγμία. Όλοι οι άνθρωποι γεννιούνται ελεύθεροι. ΟΔΟΣ
זה כיף סתם לשמוע איך תנצח קרפד עץ טוב בגן. שָׁלוֹם עֲלֵיכֶם
صِف خَلقَ خَودِ كَمِثلِ الشَمسِ إِذ بَزَغَت، يَحظى الضَجيعُ بِها نَجلاءَ مِعطارِ. السلام عليكم ١٢٣٤
सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता प्राप्त है। क्षत्रिय १२३
সমস্ত মানুষ স্বাধীনভাবে সমান মর্যাদা এবং অধিকার নিয়ে জন্মগ্রহণ করে। தமிழ் மொழி மிகவும் பழமையானது.
มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์ ຄົນເຮົາ ខ្មែរ မြန်မာ
人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心。「漢字」與繁體字、标点！
すべての人間は、生まれながらにして自由であり、ｶﾀｶﾅとひらがな、ガギグゲゴ。ヴァイオリン
모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. 한국어 각나다
ყველა ადამიანი იბადება თავისუფალი. Բոլոր մարդիկ ծնվում են ազատ. ሰላም ለሁሉም። ᏣᎳᎩ
def main(argv: list[str]) -> int:\n    return sum(x ** 2 for x in range(10)) if argv else -1  # comment
#include <stdio.h>\nint main(void) {\n\tprintf("%d\\n", 0x1F & ~3);\r\n\treturn 0;\n}
{"key": [1, 2.5e-3, null, true], "url": "https://example.com/a?b=c&d=%20#frag"} <b>bold</b> $x^2$
I'm you're he'd we've they'll don't can't I'M YOU'RE O'Neil rock'n'roll 'tis ’twas
Emoji 😀😃 👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪🇫🇷 👍🏽 ❤️ ✊🏿 and 1️⃣ 2️⃣. ½ ⅓ ² ³ № ™ ① Ⅷ ㎏ ﬁne ﬂow
  leading, double  spaces,   tabs\t\tand\n\n\nnewlines \u00a0nbsp\u3000ideographic\u2003em\u200bzero\u2028line """.splitlines()

SPECIAL = [
    " ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u0085", "\u1680", "\u180e", "\u2003", "\u200b", "\u200c", "\u200d",
    "\u2028", "\u202f", "\u205f", "\u2060", "\u3000", "\ufeff", "\ufffd", "\x00", "\x01", "\x07", "\x0b", "\x1b",
    "\x7f", "\x8f", "\x9f", "\u0301", "\u0308", "\u0323", "\u0345", "\u05b4", "\u064b", "\u0651", "\u093c", "\u094d",
    "\u0e33", "\u1100", "\u1161", "\u11a8", "\uac00", "\u3099", "\u309a", "\ufe0f", "\u20e3", "\U0001f3fd",
    "\U0001f1e9", "\u212b", "\u2126", "\u1e9b", "\u0130", "\u03a3", "\u03c2", "\u1f80", "\ufb01", "\uff21", "\u2581",
    "\u0120", "\u010a", "<unk>", "<s>", "</s>", "[MASK]", "[CLS]", "<|im_start|>", "<|endoftext|>", "'s", "'LL", "``",
    "<0x0A>", "##ing", "</w>", "|", "-", "--", "1", "23", "456", "7890", "\u0663", "\u0967", "\u00bd",
]


def known_characters() -> list[str]:
    """Characters that every Unicode library in use knows, of each script and category alike."""
    kinds = {}
    for code in [*range(0x20, 0xD800), *range(0xE000, 0x20000), *range(0xE0000, 0xE01F0)]:
        character = chr(code)
        name = unicodedata.ucd_3_2_0.name(character, None)
        if name:
            kinds.setdefault((name.split()[0], unicodedata.category(character)), []).append(character)
    return list(kinds.values())


KINDS = known_characters()


def made_up(generator: random.Random) -> str:
    """A string of runs: characters of one kind, special ones, words of the sentences."""
    parts = []
    for _ in range(generator.randint(1, 9)):
        kind = generator.random()
        if kind < 0.35:
            parts.append("".join(generator.choices(generator.choice(KINDS), k=generator.randint(1, 6))))
        elif kind < 0.6:
            parts.append(generator.choice(SPECIAL) * generator.choice((1, 1, 1, 2, 3)))
        elif kind < 0.95:
            words = generator.choice(SENTENCES).split(" ")
            start = generator.randrange(len(words))
            parts.append(" ".join(words[start : start + generator.randint(1, 4)]))
        else:
            parts.append(generator.choice(("NFD", "NFKD", "NFC")) and unicodedata.normalize(
                "NFD", generator.choice(SENTENCES)[:20]))
        if generator.random() < 0.4:
            parts.append(" ")
    return "".join(parts)


def strings(count: int, seed: int = 0) -> list[str]:
    generator = random.Random(seed)
    return ["", *SENTENCES, *(made_up(generator) for _ in range(count))]
