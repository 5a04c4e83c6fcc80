// Saving users and the members of workspaces.
#include "store/sqlite_store.h"

namespace slipway::store {

Result<void> SqliteStore::save_users(const control::Changes& changes) {
  for (const UserRecord& user : changes.users) {
    Statement put = db_->prepare("INSERT OR REPLACE INTO users VALUES (?,?,?,?,?,?,?,?,?)");
    auto saved =
        put.bind(user.name)
            .bind(user.is_service)
            .bind(user.is_disabled)
            .bind(user.password)
            .bind(user.code)
            .bind(user.code_until ? std::optional(user.code_until->time_since_epoch().count()) : std::nullopt)
            .bind(user.author)
            .bind(user.created_at.time_since_epoch().count())
            .bind(user.subject)
            .run();
    if (!saved) return saved;
  }
  for (const MemberRecord& member : changes.members) {
    Statement put = db_->prepare("INSERT OR REPLACE INTO members VALUES (?,?,?)");
    if (auto saved = put.bind(member.workspace).bind(member.user).bind(to_string(member.role)).run(); !saved)
      return saved;
  }
  for (const std::string& name : changes.users_removed) {
    Statement remove = db_->prepare("DELETE FROM users WHERE name = ?");
    if (auto done = remove.bind(name).run(); !done) return done;
  }
  for (const auto& [workspace, user] : changes.members_removed) {
    Statement remove = db_->prepare("DELETE FROM members WHERE workspace = ? AND user = ?");
    if (auto done = remove.bind(workspace).bind(user).run(); !done) return done;
  }
  return {};
}

}  // namespace slipway::store
