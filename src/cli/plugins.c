/* Plug-ins, as commands take them. */
#include "cli/cli.h"

int cli_load_plugins(const StringList *files, ferry_plugins **out) {
    ferry_error error;
    *out = NULL;
    if (!files->count) return 0;
    ferry_status status = ferry_plugins_load(files->items, files->count, out, &error);
    return status == FERRY_OK ? 0 : cli_fail(&error);
}
