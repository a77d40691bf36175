/* Writing XML: what has a meaning there is escaped, and nothing else. */
#include "check.h"
#include "format/xml_write.h"

static void attributes_are_escaped(void **state) {
    (void)state;
    Buffer out = {0};
    xml_attribute(&out, "name", "a<b> & \"c\"\x01/d");
    assert_string_equal(buffer_string(&out), " name=\"a&lt;b&gt; &amp; &quot;c&quot;?/d\"");
    buffer_free(&out);
}

static void plain_text_stays(void **state) {
    (void)state;
    Buffer out = {0};
    xml_text(&out, "");
    xml_text(&out, "modèle.0/σ'");
    assert_string_equal(buffer_string(&out), "modèle.0/σ'");
    buffer_free(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attributes_are_escaped),
        cmocka_unit_test(plain_text_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
