/* Images, sounds and processors: what is refused and how, and the arithmetic that the comparison with
 * Transformers cannot reach. */
#include "check.h"
#include "media/processor.h"

#include <math.h>

/* ---- images ---- */

/* An image of known bytes. */
static Image make_image(size_t width, size_t height) {
    ferry_error error;
    Image image;
    assert_ok(image_new("image", width, height, &image, &error), &error);
    for (size_t i = 0; i < width * height * 3; i++)
        image.pixels[i] = (unsigned char)(i * 7 + i / 5);
    return image;
}

static void test_what_is_no_image(void **state) {
    static const unsigned char png[] =
        "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x8\0\0\0\0\0\0\0\0";
    static const unsigned char jpeg[] = "\xff\xd8\xff\xe0";
    ferry_error error;
    Image image;
    (void)state;
    assert_fails(image_decode("a.gif", (const unsigned char *)"GIF89a", 6, 100, &image, &error),
                 FERRY_UNSUPPORTED, &error, "is no PNG and no JPEG image");
    assert_fails(image_decode("a.png", png, 8, 100, &image, &error), FERRY_BAD_FORMAT, &error,
                 "the PNG is damaged: the file ends early");
    assert_fails(image_decode("a.png", png, sizeof png - 1, 100, &image, &error), FERRY_BAD_FORMAT,
                 &error, "the PNG is damaged");
    assert_fails(image_decode("a.jpg", jpeg, 4, 100, &image, &error), FERRY_BAD_FORMAT, &error,
                 "the JPEG is damaged");
    assert_null(image.pixels);
    assert_fails(image_check_size("a.png", 20, 6, 100, &error), FERRY_UNSUPPORTED, &error,
                 "the image has 20 x 6 pixels; expected at least one, and at most 100");
    assert_fails(image_check_size("a.png", SIZE_MAX, 2, 100, &error), FERRY_UNSUPPORTED, &error,
                 "at most 100");
}

static void test_a_size_of_nothing_is_refused(void **state) {
    ferry_error error;
    Image image = make_image(5, 4), out;
    (void)state;
    assert_fails(image_resize(&image, 0, 3, FILTER_BILINEAR, &out, &error), FERRY_UNSUPPORTED,
                 &error, "0 x 3 pixels");
    assert_fails(image_resize(&image, 1 << 20, 1 << 20, FILTER_BILINEAR, &out, &error),
                 FERRY_UNSUPPORTED, &error, "at most 178956970");
    image_free(&image);
}

/* A flat image stays flat, whatever the filter and the size. */
static void test_resizing_keeps_a_color(void **state) {
    ferry_error error;
    Image image = make_image(37, 23), out;
    (void)state;
    memset(image.pixels, 201, 37 * 23 * 3);
    for (size_t filter = 0; filter < 3; filter++) {
        static const size_t sizes[][2] = {{1, 1}, {5, 60}, {80, 3}, {37, 23}, {36, 24}, {300, 1}};
        for (size_t i = 0; i < COUNT(sizes); i++) {
            assert_ok(image_resize(&image, sizes[i][0], sizes[i][1], (Filter)filter, &out, &error),
                      &error);
            for (size_t k = 0; k < out.width * out.height * 3; k++)
                assert_int_equal(out.pixels[k], 201);
            image_free(&out);
        }
    }
    image_free(&image);
}

/* Turning an image by what undoes an orientation gives the image. */
static void test_orientations(void **state) {
    static const int undo[] = {
        [1] = 1, [2] = 2, [3] = 3, [4] = 4, [5] = 5, [6] = 8, [7] = 7, [8] = 6};
    ferry_error error;
    Image image = make_image(4, 3), once, twice;
    (void)state;
    for (int turn = 1; turn <= 8; turn++) {
        assert_ok(image_orient(&image, turn, &once, &error), &error);
        assert_ok(image_orient(&once, undo[turn], &twice, &error), &error);
        assert_int_equal(twice.width, 4);
        assert_memory_equal(twice.pixels, image.pixels, 4 * 3 * 3);
        image_free(&once);
        image_free(&twice);
    }
    image_free(&image);
}

static void test_exif(void **state) {
    static const unsigned char big[] = "MM\0*\0\0\0\x8\0\1\x1\x12\0\3\0\0\0\1\0\6\0\0";
    static const unsigned char little[] = "II*\0\x8\0\0\0\1\0\x12\1\3\0\1\0\0\0\3\0\0\0";
    (void)state;
    assert_int_equal(exif_orientation(big, sizeof big - 1), 6);
    assert_int_equal(exif_orientation(little, sizeof little - 1), 3);
    for (size_t size = 0; size < sizeof big - 1; size++)
        assert_int_equal(exif_orientation(big, size), 1);
    assert_int_equal(exif_orientation((const unsigned char *)"MM\0*\xff\xff\xff\xff", 8), 1);
}

/* ---- sounds ---- */

static void test_what_is_no_sound(void **state) {
    static const struct {
        const char *bytes;
        size_t size;
        ferry_status status;
        const char *message;
    } cases[] = {
        {"OggS", 4, FERRY_UNSUPPORTED, "is no WAV file"},
        {"RIFF\0\0\0\0WAVE", 12, FERRY_BAD_FORMAT, "has no \"fmt \" before its \"data\" chunk"},
        {"RIFF\0\0\0\0WAVEfmt \4\0\0\0abcd", 24, FERRY_BAD_FORMAT,
         "the \"fmt \" chunk is too short"},
        {"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\2\0\1\0\x40\x1f\0\0\0\0\0\0\0\0\4\0", 36,
         FERRY_UNSUPPORTED, "the samples have format 2 with 4 bits"},
        {"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\0\0\0\0\0\0\x8\0", 36,
         FERRY_BAD_FORMAT, "has no \"data\" chunk"},
        {"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\1\0\0\0\x40\x1f\0\0\0\0\0\0\0\0\x8\0", 36,
         FERRY_BAD_FORMAT, "has 0 channels of 8000 samples a second"},
        {"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\1\0\0\0\0\0\0\0\0\0\x8\0", 36, FERRY_BAD_FORMAT,
         "1 channels of 1 samples a second; expected at least one, of 1000 to 1000000"},
    };
    ferry_error error;
    Audio audio;
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_fails(audio_decode("a.wav", (const unsigned char *)cases[i].bytes, cases[i].size,
                                  &audio, &error),
                     cases[i].status, &error, cases[i].message);
}

/* The transform of lengths of all sorts is that of the definition. */
static void test_fourier_transform(void **state) {
    static const size_t lengths[] = {1, 2, 3, 7, 12, 25, 400, 97};
    (void)state;
    for (size_t i = 0; i < COUNT(lengths); i++) {
        size_t n = lengths[i];
        Complex *values = calloc(n, sizeof *values), *scratch = calloc(2 * n, sizeof *scratch);
        Complex *roots = calloc(n, sizeof *roots), *input = calloc(n, sizeof *input);
        fft_roots(roots, n);
        for (size_t k = 0; k < n; k++)
            values[k] = input[k] = (Complex){(double)(k * k % 11), (double)(k % 3)};
        fft(values, scratch, roots, n);
        for (size_t k = 0; k < n; k++) {
            Complex sum = {0, 0};
            for (size_t j = 0; j < n; j++) {
                Complex root = roots[j * k % n];
                sum.re += input[j].re * root.re - input[j].im * root.im;
                sum.im += input[j].re * root.im + input[j].im * root.re;
            }
            assert_true(fabs(sum.re - values[k].re) < 1e-9 * (double)(n + 10));
            assert_true(fabs(sum.im - values[k].im) < 1e-9 * (double)(n + 10));
        }
        free(values);
        free(scratch);
        free(roots);
        free(input);
    }
}

/* ---- processors ---- */

/* Open a processor of these files, JSON text; NULL: there is none. */
static ferry_status open_processor(const char *whole, const char *part, ferry_processor **out,
                                   ferry_error *error) {
    ProcessorFiles files = {.directory = "model",
                            .whole_path = "processor_config.json",
                            .part_path = "preprocessor_config.json"};
    error_clear(error);
    files.whole = whole ? json_loads(whole, 0, NULL) : NULL;
    files.part = part ? json_loads(part, 0, NULL) : NULL;
    files.tokens = json_loads("{\"image_token\": \"<image>\"}", 0, NULL);
    *out = calloc(1, sizeof **out);
    (*out)->path = "model";
    ferry_status status = processor_read(*out, &files, error);
    json_decref(files.whole);
    json_decref(files.part);
    json_decref(files.tokens);
    return status;
}

static void test_configurations_that_are_refused(void **state) {
    static const struct {
        const char *whole, *part;
        ferry_status status;
        const char *message;
    } cases[] = {
        {NULL, "{}", FERRY_UNSUPPORTED,
         "names no \"image_processor_type\" and no \"feature_extractor_type\""},
        {NULL, "{\"image_processor_type\": \"SamImageProcessor\"}", FERRY_UNSUPPORTED,
         "the processor SamImageProcessor is not supported; these are: CLIPImageProcessor"},
        {NULL, "{\"feature_extractor_type\": \"EncodecFeatureExtractor\"}", FERRY_UNSUPPORTED,
         "the processor EncodecFeatureExtractor is not supported"},
        {NULL, "{\"image_processor_type\": \"ViTImageProcessor\", \"size\": \"big\"}",
         FERRY_BAD_FORMAT, "\"size\" is a string; expected a number, or an object of edges"},
        {NULL, "{\"image_processor_type\": \"ViTImageProcessor\", \"size\": {\"height\": -1}}",
         FERRY_BAD_FORMAT, "\"height\" of \"size\" is an integer; expected a whole number"},
        {NULL, "{\"image_processor_type\": \"ViTImageProcessor\", \"resample\": 0}",
         FERRY_UNSUPPORTED,
         "\"resample\" is 0; supported are 1 (Lanczos), 2 (bilinear) and 3 (bicubic)"},
        {NULL, "{\"image_processor_type\": \"ViTImageProcessor\", \"image_mean\": [1, 2]}",
         FERRY_BAD_FORMAT, "\"image_mean\" is an array; expected three numbers, or one"},
        {NULL, "{\"image_processor_type\": \"ViTImageProcessor\", \"do_resize\": 1}",
         FERRY_BAD_FORMAT, "\"do_resize\" is an integer; expected true or false"},
        {NULL,
         "{\"image_processor_type\": \"ViTImageProcessor\", \"do_rescale\": false, "
         "\"do_normalize\": false}",
         FERRY_UNSUPPORTED, "\"do_rescale\" and \"do_normalize\" are both false"},
        {NULL, "{\"image_processor_type\": \"CLIPImageProcessor\", \"crop_size\": {\"height\": 5}}",
         FERRY_BAD_FORMAT, "\"crop_size\" needs \"height\" and \"width\""},
        {NULL, "{\"image_processor_type\": \"CLIPImageProcessor\", \"do_pad\": true}",
         FERRY_UNSUPPORTED, "\"do_pad\" of CLIPImageProcessor is not supported"},
        {NULL, "{\"image_processor_type\": \"Gemma3ImageProcessor\", \"do_pan_and_scan\": true}",
         FERRY_UNSUPPORTED, "\"do_pan_and_scan\" is not supported"},
        {NULL, "{\"image_processor_type\": \"Qwen2VLImageProcessor\", \"patch_size\": 0.5}",
         FERRY_BAD_FORMAT, "\"patch_size\" is 0.5; expected a whole number from 1 to 256"},
        {NULL, "{\"feature_extractor_type\": \"WhisperFeatureExtractor\", \"dither\": 0.1}",
         FERRY_UNSUPPORTED, "\"dither\" adds noise"},
        {"{\"processor_class\": \"LlavaProcessor\"}",
         "{\"image_processor_type\": \"CLIPImageProcessor\"}", FERRY_BAD_FORMAT,
         "\"patch_size\" is missing; expected a number"},
        {"{\"processor_class\": \"PaliGemmaProcessor\"}",
         "{\"image_processor_type\": \"SiglipImageProcessor\"}", FERRY_BAD_FORMAT,
         "has \"bos_token\""},
        {"{\"processor_class\": \"Gemma3Processor\"}",
         "{\"image_processor_type\": \"Gemma3ImageProcessor\"}", FERRY_BAD_FORMAT,
         "neither this nor tokenizer_config.json has \"boi_token\""},
    };
    ferry_error error;
    ferry_processor *processor;
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_fails(open_processor(cases[i].whole, cases[i].part, &processor, &error),
                     cases[i].status, &error, cases[i].message);
        ferry_processor_close(processor);
    }
}

/* Older names mean what they meant; a part in processor_config.json comes first; null is the default. */
static void test_where_settings_are_found(void **state) {
    ferry_error error;
    ferry_processor *processor;
    (void)state;
    assert_ok(open_processor(NULL,
                             "{\"feature_extractor_type\": \"CLIPFeatureExtractor\", \"size\": 60, "
                             "\"crop_size\": 50}",
                             &processor, &error),
              &error);
    assert_int_equal(processor->image_settings.size.shortest_edge, 60);
    assert_int_equal(processor->image_settings.crop_size.height, 50);
    ferry_processor_close(processor);
    assert_ok(open_processor("{\"image_processor\": {\"image_processor_type\": "
                             "\"ViTImageProcessor\", \"size\": 33}}",
                             "{\"image_processor_type\": \"ViTImageProcessor\", \"size\": 44}",
                             &processor, &error),
              &error);
    assert_int_equal(processor->image_settings.size.width, 33);
    ferry_processor_close(processor);
    assert_ok(open_processor(NULL,
                             "{\"image_processor_type\": \"SiglipImageProcessorFast\", "
                             "\"do_resize\": null, \"size\": null}",
                             &processor, &error),
              &error);
    assert_true(processor->image_settings.do_resize);
    assert_int_equal(processor->image_settings.size.height, 224);
    assert_null(ferry_processor_image_token(processor));
    ferry_processor_close(processor);
}

static void ignore(void *context, const char *text, size_t length) {
    (void)context, (void)text, (void)length;
}

static void test_inputs_that_are_refused(void **state) {
    static const char png[] = "\x89PNG\r\n\x1a\n", wav[] = "RIFF\0\0\0\0WAVE";
    const ferry_media sound = {NULL, wav, 12}, image = {NULL, png, 8}, other = {NULL, "text", 4},
                      missing = {"/nonexistent/a.png", NULL, 0};
    ferry_error error;
    ferry_processor *images, *sounds;
    ferry_processed *out;
    (void)state;
    assert_ok(
        open_processor("{\"processor_class\": \"Idefics3Processor\", \"fake_image_token\": \"f\", "
                       "\"global_image_token\": \"g\"}",
                       "{\"image_processor_type\": \"Idefics3ImageProcessor\"}", &images, &error),
        &error);
    assert_ok(open_processor(NULL, "{\"feature_extractor_type\": \"WhisperFeatureExtractor\"}",
                             &sounds, &error),
              &error);
    assert_fails(ferry_processor_run(images, &sound, 1, &out, &error), FERRY_INVALID_ARGUMENT,
                 &error, "is a sound; this model takes none");
    assert_fails(ferry_processor_run(sounds, &image, 1, &out, &error), FERRY_INVALID_ARGUMENT,
                 &error, "is an image; this model takes none");
    assert_fails(ferry_processor_run(images, &other, 1, &out, &error), FERRY_UNSUPPORTED, &error,
                 "is no PNG, no JPEG and no WAV file");
    assert_contains(error.where, "item 0");
    assert_fails(ferry_processor_run(images, &missing, 1, &out, &error), FERRY_NOT_FOUND, &error,
                 "");
    assert_null(out);
    assert_ok(ferry_processor_run(images, NULL, 0, &out, &error), &error);
    assert_int_equal(ferry_tensors_count(ferry_processed_tensors(out)), 0);
    assert_int_equal(ferry_processed_tokens(out, 0), 0);
    assert_null(ferry_processed_token(out, 0));
    assert_ok(ferry_processed_expand(out, "an <image>", 10, ignore, NULL, &error), &error);
    assert_fails(ferry_processed_expand(out, "a\0b", 3, ignore, NULL, &error),
                 FERRY_INVALID_ARGUMENT, &error, "contains a NUL character");
    ferry_processed_free(out);
    ferry_processor_close(images);
    ferry_processor_close(sounds);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_no_image),
        cmocka_unit_test(test_a_size_of_nothing_is_refused),
        cmocka_unit_test(test_resizing_keeps_a_color),
        cmocka_unit_test(test_orientations),
        cmocka_unit_test(test_exif),
        cmocka_unit_test(test_what_is_no_sound),
        cmocka_unit_test(test_fourier_transform),
        cmocka_unit_test(test_configurations_that_are_refused),
        cmocka_unit_test(test_where_settings_are_found),
        cmocka_unit_test(test_inputs_that_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
