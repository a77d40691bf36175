/* Translations of products of tensors by an equation: einsum and its relatives. Every product becomes
 * one matmul over [batch..., left, inner] and [batch..., inner, right]. */
#include "source/pt2/reader.h"

#include <ctype.h>
#include <string.h>

enum { MAX_OPERANDS = 8, MAX_LABELS = FERRY_MAX_RANK, MAX_KEPT = 64, FIRST_WILD = 200 };

/* A tensor with a label for each dimension: a letter, or FIRST_WILD + i for the i-th last one under the
 * ellipsis. */
typedef struct Term {
    Value *value;
    int labels[MAX_KEPT]; /* more than a tensor has: the labels that are needed later */
    uint32_t rank;
} Term;

static bool has_label(const Term *term, int label) {
    for (uint32_t d = 0; d < term->rank; d++) {
        if (term->labels[d] == label) return true;
    }
    return false;
}

static const Sym *size_of(const Term *term, int label) {
    for (uint32_t d = 0; d < term->rank; d++) {
        if (term->labels[d] == label) return term->value->shape[d];
    }
    return NULL;
}

/* Sum over the dimensions whose labels neither `a` nor `b` (may be NULL) has. */
static void sum_out(Call *c, Term *term, const Term *a, const Term *b) {
    int64_t dims[MAX_LABELS];
    uint32_t count = 0, kept = 0;
    for (uint32_t d = 0; d < term->rank; d++) {
        bool keep = (a && has_label(a, term->labels[d])) || (b && has_label(b, term->labels[d]));
        if (keep)
            term->labels[kept++] = term->labels[d];
        else
            dims[count++] = d;
    }
    term->rank = kept;
    if (count == 0) return;
    const Arg args[] = {arg_tensor(term->value), arg_ints(c->b, dims, count), arg_bool(false)};
    term->value = build_op(c->b, OP_SUM, args, 3);
}

/* The dimensions in the order of `labels`. */
static Value *reorder(Call *c, const Term *term, const int *labels) {
    int64_t dims[MAX_LABELS];
    bool moved = false;
    for (uint32_t i = 0; i < term->rank; i++) {
        dims[i] = 0;
        for (uint32_t d = 0; d < term->rank; d++) {
            if (term->labels[d] == labels[i]) dims[i] = d;
        }
        moved = moved || dims[i] != i;
    }
    return moved ? build_permute(c->b, term->value, dims) : term->value;
}

/* The labels of two terms by the part they play in the product. */
typedef struct Roles {
    int batch[MAX_LABELS], left[MAX_LABELS], inner[MAX_LABELS], right[MAX_LABELS];
    uint32_t batches, lefts, inners, rights;
} Roles;

static void find_roles(const Term *a, const Term *b, const Term *kept, Roles *roles) {
    *roles = (Roles){0};
    for (uint32_t d = 0; d < a->rank; d++) {
        int label = a->labels[d];
        if (!has_label(b, label))
            roles->left[roles->lefts++] = label;
        else if (has_label(kept, label))
            roles->batch[roles->batches++] = label;
        else
            roles->inner[roles->inners++] = label;
    }
    for (uint32_t d = 0; d < b->rank; d++) {
        if (!has_label(a, b->labels[d])) roles->right[roles->rights++] = b->labels[d];
    }
}

static const Sym *count_of(Call *c, const Term *term, const int *labels, uint32_t count) {
    const Sym *product = build_const(c->b, 1);
    for (uint32_t i = 0; i < count; i++)
        product = sym_mul(&c->b->program->symbols, product, size_of(term, labels[i]));
    return product;
}

/* [batch..., product of the first, product of the second] */
static Value *as_matrices(Call *c, const Term *term, const Roles *roles, const int *first,
                          uint32_t firsts, const int *second, uint32_t seconds) {
    int order[MAX_LABELS];
    const Sym *shape[MAX_LABELS];
    memcpy(order, roles->batch, roles->batches * sizeof *order);
    memcpy(order + roles->batches, first, firsts * sizeof *order);
    memcpy(order + roles->batches + firsts, second, seconds * sizeof *order);
    for (uint32_t i = 0; i < roles->batches; i++) shape[i] = size_of(term, roles->batch[i]);
    shape[roles->batches] = count_of(c, term, first, firsts);
    shape[roles->batches + 1] = count_of(c, term, second, seconds);
    Value *moved = reorder(c, term, order);
    if (firsts == 1 && seconds == 1) return moved;
    return build_view(c->b, moved, shape, roles->batches + 2);
}

/* a b, summed over the labels that both have and `kept` has not. */
static Term multiply(Call *c, Term *a, Term *b, const Term *kept) {
    Roles roles;
    Term result = {.value = a->value};
    const Sym *shape[MAX_LABELS];
    sum_out(c, a, b, kept);
    sum_out(c, b, a, kept);
    find_roles(a, b, kept, &roles);
    result.rank = roles.batches + roles.lefts + roles.rights;
    if (roles.batches + 2 > MAX_LABELS || result.rank > MAX_LABELS) {
        take_fail(c, FERRY_UNSUPPORTED, "a product of rank above %d", MAX_LABELS);
        return result;
    }
    Value *left = as_matrices(c, a, &roles, roles.left, roles.lefts, roles.inner, roles.inners);
    Value *right = as_matrices(c, b, &roles, roles.inner, roles.inners, roles.right, roles.rights);
    Value *product = roles.inners ? build_matmul(c->b, left, right) : build_mul(c->b, left, right);
    if (!build_ok(c->b)) return result;
    memcpy(result.labels, roles.batch, roles.batches * sizeof *roles.batch);
    for (uint32_t i = 0; i < roles.batches; i++) shape[i] = product->shape[i];
    for (uint32_t i = 0; i < roles.lefts; i++) {
        shape[roles.batches + i] = size_of(a, roles.left[i]);
        result.labels[roles.batches + i] = roles.left[i];
    }
    for (uint32_t i = 0; i < roles.rights; i++) {
        shape[roles.batches + roles.lefts + i] = size_of(b, roles.right[i]);
        result.labels[roles.batches + roles.lefts + i] = roles.right[i];
    }
    bool plain = roles.lefts == 1 && roles.rights == 1;
    result.value = plain ? product : build_view(c->b, product, shape, result.rank);
    return result;
}

/* ---- einsum ---- */

/* The labels of one operand: letters, and "..." for `wild` dimensions. False when it is not so. */
static bool read_labels(const char *text, size_t length, uint32_t wild, Term *term) {
    term->rank = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == ' ') continue;
        if (text[i] == '.') {
            if (i + 2 >= length || text[i + 1] != '.' || text[i + 2] != '.') return false;
            i += 2;
            for (uint32_t w = wild; w-- > 0;) {
                if (term->rank == MAX_LABELS) return false;
                term->labels[term->rank++] = FIRST_WILD + (int)w;
            }
            continue;
        }
        if (!isalpha((unsigned char)text[i]) || term->rank == MAX_LABELS) return false;
        if (has_label(term, text[i])) return false;
        term->labels[term->rank++] = text[i];
    }
    return true;
}

static uint32_t count_letters(const char *text, size_t length) {
    uint32_t count = 0;
    for (size_t i = 0; i < length; i++) count += isalpha((unsigned char)text[i]) != 0;
    return count;
}

/* Without "->": the ellipsis, then the letters that occur once, in alphabetical order. */
static void implicit_output(const Term *terms, uint32_t count, uint32_t wild, Term *out) {
    out->rank = 0;
    for (uint32_t w = wild; w-- > 0;) out->labels[out->rank++] = FIRST_WILD + (int)w;
    for (int letter = 'A'; letter <= 'z'; letter++) {
        uint32_t found = 0;
        for (uint32_t i = 0; i < count; i++) found += has_label(&terms[i], letter);
        if (found == 1 && out->rank < MAX_LABELS) out->labels[out->rank++] = letter;
    }
}

static bool read_equation(const char *text, Value *const *values, uint32_t count, Term *terms,
                          Term *out) {
    const char *arrow = strstr(text, "->"), *end = arrow ? arrow : text + strlen(text);
    uint32_t most = 0, next = 0;
    for (; next < count; next++) {
        const char *comma = memchr(text, ',', (size_t)(end - text));
        size_t length = (size_t)((comma ? comma : end) - text);
        uint32_t letters = count_letters(text, length), rank = values[next]->rank;
        uint32_t wild = memchr(text, '.', length) && rank > letters ? rank - letters : 0;
        terms[next].value = values[next];
        if (!read_labels(text, length, wild, &terms[next]) || terms[next].rank != rank)
            return false;
        if (wild > most) most = wild;
        if ((comma == NULL) != (next + 1 == count)) return false;
        text = comma ? comma + 1 : end;
    }
    if (arrow) return read_labels(arrow + 2, strlen(arrow + 2), most, out);
    implicit_output(terms, count, most, out);
    return true;
}

/* The labels that are needed after operand `done`. */
static Term needed_later(const Term *terms, uint32_t done, uint32_t count, const Term *out) {
    Term kept = *out;
    for (uint32_t i = done + 1; i < count; i++) {
        for (uint32_t d = 0; d < terms[i].rank && kept.rank < MAX_KEPT; d++) {
            if (!has_label(&kept, terms[i].labels[d]))
                kept.labels[kept.rank++] = terms[i].labels[d];
        }
    }
    return kept;
}

static Value *contract(Call *c, Term *terms, uint32_t count, const Term *out) {
    Term current = terms[0];
    for (uint32_t i = 1; i < count && build_ok(c->b); i++) {
        Term kept = needed_later(terms, i, count, out);
        current = multiply(c, &current, &terms[i], &kept);
    }
    if (!build_ok(c->b)) return current.value;
    sum_out(c, &current, out, NULL);
    if (current.rank != out->rank)
        return take_fail(c, FERRY_BAD_FORMAT, "an output label that no operand has");
    return reorder(c, &current, out->labels);
}

static void translate_einsum(Call *c) {
    Value *values[MAX_OPERANDS];
    Term terms[MAX_OPERANDS], out;
    const char *equation = take_string(c, "equation", "");
    uint32_t count = take_tensors(c, "tensors", values, MAX_OPERANDS);
    ferry_dtype dtype = result_dtype(c);
    if (!build_ok(c->b)) return;
    if (count == 0 || !read_equation(equation, values, count, terms, &out)) {
        take_fail(c, FERRY_UNSUPPORTED, "the equation \"%s\" is not supported", equation);
        return;
    }
    for (uint32_t i = 0; i < count; i++) terms[i].value = promote_to(c, terms[i].value, dtype);
    result_set(c, 0, contract(c, terms, count, &out));
}

/* tensordot: dims_self of one are summed with dims_other of the other. */
static void translate_tensordot(Call *c) {
    Term terms[2] = {{.value = take_tensor(c, "self")}, {.value = take_tensor(c, "other")}}, out;
    int64_t dims[2][FERRY_MAX_RANK];
    uint32_t count = take_ints(c, "dims_self", dims[0], FERRY_MAX_RANK);
    uint32_t other = take_ints(c, "dims_other", dims[1], FERRY_MAX_RANK);
    if (!build_ok(c->b)) return;
    out.rank = 0;
    for (uint32_t t = 0; t < 2; t++) {
        Term *term = &terms[t];
        term->rank = term->value->rank;
        for (uint32_t d = 0; d < term->rank; d++) term->labels[d] = (t ? 'A' : 'a') + (int)d;
        for (uint32_t i = 0; i < count && i < other; i++) {
            int64_t dim = dims[t][i] < 0 ? dims[t][i] + term->rank : dims[t][i];
            if (dim >= 0 && dim < term->rank) term->labels[dim] = FIRST_WILD + (int)i;
        }
        for (uint32_t d = 0; d < term->rank; d++) {
            if (term->labels[d] < FIRST_WILD && out.rank < MAX_LABELS)
                out.labels[out.rank++] = term->labels[d];
        }
    }
    result_set(c, 0, contract(c, terms, 2, &out));
}

#define SIMPLE(target, function)                                                                   \
    { target, function, OP_COUNT, ALIAS_NEVER, NULL }

const Translation translate_product[] = {
    SIMPLE("aten.einsum.default", translate_einsum),
    SIMPLE("aten.tensordot.default", translate_tensordot),
    {0},
};
