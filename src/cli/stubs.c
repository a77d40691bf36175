#include "cli/cli.h"
const Command command_check = {0}, command_show = {0}, command_models = {0}, command_ops = {0},
              command_doctor = {0};
