/* Made by tools/fixtures/decoder_fixture.py with PyTorch 2.15.0+cu132, transformers 5.24.0. Do not edit. */
enum { DECODER_BATCH = 4, DECODER_STEPS = 20, DECODER_CONTEXT = 24, DECODER_VOCABULARY = 64,
       TERNARY_STEPS = 8 };
typedef struct decoder_run { const char *name; hd_gpt model; float losses[DECODER_STEPS], norms[DECODER_STEPS]; } decoder_run;
static const decoder_run decoder_runs[] = {
    { "llama",
      { .layers = 2, .width = 16, .heads = 4, .context = 24, .vocabulary = 64, .family = HD_FAMILY_LLAMA,
        .kv_heads = 2, .head_size = 4, .feed_forward = 24, .tied = 0, .epsilon = 1e-05, .rope_theta = 10000 },
      { 4.44514418f, 4.62800932f, 4.48567247f, 4.69910765f, 4.4525218f, 4.43129015f, 4.45765686f, 4.57723522f,
        4.42690563f, 4.32669878f, 4.3054018f, 4.44487143f, 4.45070696f, 4.37218761f, 4.39728594f, 4.40933657f,
        4.30545998f, 4.38218546f, 4.41656017f, 4.23141479f, },
      { 1.47302067f, 1.77039516f, 1.43770504f, 1.57802367f, 1.19852054f, 1.57699931f, 1.22221124f, 1.14300966f,
        1.13310325f, 1.19512391f, 1.2512989f, 1.19966221f, 1.17333353f, 1.0282712f, 1.22157872f, 1.05596864f,
        1.27387178f, 1.08952677f, 1.2444942f, 0.888134599f, },
    },
    { "qwen3",
      { .layers = 2, .width = 16, .heads = 4, .context = 24, .vocabulary = 64, .family = HD_FAMILY_QWEN3,
        .kv_heads = 2, .head_size = 8, .feed_forward = 24, .tied = 1, .epsilon = 1e-06, .rope_theta = 1e+06 },
      { 4.47047853f, 4.50133991f, 4.6069665f, 4.58576441f, 4.43574905f, 4.38885403f, 4.50475359f, 4.52445459f,
        4.28494978f, 4.33585596f, 4.45472574f, 4.41051483f, 4.47161531f, 4.41420412f, 4.36465216f, 4.29509354f,
        4.37969875f, 4.42337084f, 4.2619338f, 4.35815525f, },
      { 2.54473495f, 1.35508525f, 1.60952473f, 2.27650905f, 1.93214726f, 1.51767659f, 1.4704535f, 1.69776475f,
        1.23933482f, 2.0534513f, 1.71645331f, 1.30141616f, 1.73034739f, 1.4682548f, 1.20542467f, 1.26558149f,
        1.27693343f, 1.27602661f, 1.20516956f, 1.24277329f, },
    },
};
static const decoder_run ternary_runs[] = {
    { "llama",
      { .layers = 1, .width = 256, .heads = 4, .context = 24, .vocabulary = 64, .family = HD_FAMILY_LLAMA,
        .kv_heads = 2, .head_size = 64, .feed_forward = 256, .tied = 1, .epsilon = 1e-05, .rope_theta = 10000 },
      { 4.24347782f, 4.92699766f, 4.40915918f, 4.31955671f, 4.33049154f, 4.32038927f, 4.2399106f, 4.20841837f, },
      { 11.0478506f, 13.9730253f, 11.5461931f, 7.69736147f, 4.88181353f, 3.73542953f, 3.03206801f, 2.49450421f, },
    },
};
