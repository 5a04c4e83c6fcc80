#pragma once
// Adds the commands that users of Azure's `az` know. One file per noun.
#include "cli/commands/command.h"
#include "cli/commands/context.h"

namespace slipway::cli {

void add_batchai(CommandTree& tree, Context& context);
void add_storage(CommandTree& tree, Context& context);
void add_group(CommandTree& tree, Context& context);
void add_configure(CommandTree& tree, Context& context);
void add_provider(CommandTree& tree, Context& context);
void add_login(CommandTree& tree, Context& context);

}  // namespace slipway::cli
