/* Any text as a symbolic integer: refused with a message, or an expression that prints as a text which
 * is read as the same expression, and whose value lies in its range. */
#include "base/error.h"
#include "graph/sym.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_values(const Sym *sym, size_t symbol_count) {
    int64_t *values = calloc(symbol_count + 1, sizeof *values), value;
    if (!values) abort();
    for (int64_t base = 0; base < 4; base++) {
        for (size_t i = 0; i < symbol_count; i++) values[i] = base + (int64_t)(i * 7 % 5);
        if (!sym_evaluate(sym, values, &value)) continue;
        if (value < sym->lower || value > sym->upper) abort();
    }
    free(values);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    Arena arena = {0};
    SymTable table;
    const Sym *sym, *again;
    ferry_error error = {0};
    Buffer printed = {0};
    sym_table_init(&table, &arena);
    const char *text = arena_string_n(&arena, (const char *)bytes, size);
    if (sym_parse(&table, text, true, &sym, &error) == FERRY_OK) {
        size_t symbols = table.symbols.count;
        sym_print(&printed, sym);
        if (sym_parse(&table, buffer_string(&printed), true, &again, &error) != FERRY_OK) abort();
        if (again != sym || table.symbols.count != symbols) abort();
        check_values(sym, symbols);
    } else if (!error.message[0]) {
        abort();
    }
    buffer_free(&printed);
    sym_table_free(&table);
    arena_free(&arena);
    return 0;
}
