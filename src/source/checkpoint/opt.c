/* OPT: learned positions that count the tokens of the attention mask, and, in one size of the model,
 * norms after the residuals and embeddings narrower than the layers. */
#include "source/checkpoint/gpt.h"

static const char *const opt_ignored[] = {"learned_embeddings", "scale_embeddings", NULL};

const GptTraits opt_traits = {.hidden = {"hidden_size", NULL, 768},
                              .layers = {"num_hidden_layers", NULL, 12},
                              .heads = {"num_attention_heads", NULL, 12},
                              .inner = {"ffn_dim", NULL, 3072},
                              .positions = {"max_position_embeddings", NULL, 2048},
                              .vocabulary = 50272,
                              .activation_key = "activation_function",
                              .activation = "relu",
                              .ignored = opt_ignored,
                              .embedding = "decoder.embed_tokens.weight",
                              .layer = "decoder.layers",
                              .attention_norm = "self_attn_layer_norm",
                              .attention = "self_attn",
                              .output = "out_proj",
                              .mlp_norm = "final_layer_norm",
                              .up = "fc1",
                              .down = "fc2",
                              .logits = "lm_head",
                              .pads = true,
                              .pad = 1};

/* The first rows of the table of positions are for padding. */
enum { POSITION_OFFSET = 2 };

/* position_ids when given, else the number of tokens so far, and -1 at padding. */
static Value *token_positions(Model *m, Value *padding) {
    Builder *b = &m->b;
    Value *given =
        model_input(m, "position_ids", FERRY_I64, 2, (const Sym *const[]){m->batch, m->sequence});
    if (given || !padding) return model_positions(m);
    Value *kept = build_to(b, padding, FERRY_I64);
    return build_scalar(b, OP_ADD_SCALAR, build_mul(b, build_cumsum(b, kept, 1), kept), -1);
}

void build_opt(Model *m) {
    GptDecoder d = gpt_start(m);
    int64_t features = gpt_size(m, &(GptSize){"word_embed_proj_dim", NULL, d.hidden});
    int64_t rows = gpt_size(m, &d.traits->positions) + POSITION_OFFSET;
    bool norm_first = config_bool_or(m, "do_layer_norm_before", true);
    bool final_norm = norm_first && !config_bool_or(m, "_remove_final_layer_norm", false);
    if (!build_ok(&m->b)) return;
    d.qkv_bias = d.output_bias = d.up_bias = d.down_bias = config_bool_or(m, "enable_bias", true);
    d.affine = config_bool_or(m, "layer_norm_elementwise_affine", true);
    d.order = norm_first ? GPT_PRE : GPT_POST;
    Value *x = gpt_embed(&d, features);
    Value *padding = model_padding_mask(m);
    Value *positions = token_positions(m, padding);
    positions = build_scalar(&m->b, OP_ADD_SCALAR, positions, POSITION_OFFSET);
    d.mask[0] = model_mask(m, padding, true, 0);
    if (features != d.hidden) x = model_linear(m, x, d.hidden, false, "decoder.project_in");
    x = build_add(&m->b, x,
                  gpt_position_embedding(&d, "decoder.embed_positions.weight", rows, positions));
    x = gpt_layers(&d, x);
    if (final_norm) x = gpt_norm(&d, x, "decoder.final_layer_norm");
    if (features != d.hidden) x = model_linear(m, x, features, false, "decoder.project_out");
    gpt_outputs(&d, x);
}
