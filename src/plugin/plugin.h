/* The public C API for plug-ins (include/ferry/plugin.h), in terms of the folders it opens, and the
 * loading of shared objects. */
#ifndef PLUGIN_PLUGIN_H
#define PLUGIN_PLUGIN_H

#include "graph/registry.h"
#include <ferry/plugin.h>

/* Put everything that is built in into an empty registry. */
ferry_status plugin_builtin(Registry *registry, ferry_error *error);

/* The registry behind loaded plug-ins. */
const Registry *plugin_registry(const ferry_plugins *plugins);

#endif
