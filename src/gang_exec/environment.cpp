#include "gang_exec/environment.h"

#include <algorithm>
#include <initializer_list>

namespace slipway::gang_exec {
namespace {

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool begins_with(std::string_view name, std::initializer_list<std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

bool is_plain(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  });
}

// A node's own value wins, but one that was given none takes the caller's.
bool is_given(std::string_view name) {
  return begins_with(name, {"SLIPWAY_", "AZ_BATCH"}) ||
         is_one_of(name,
                   {"NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "HOROVOD_GLOO_IFACE"});
}

}  // namespace

bool is_of_node(std::string_view name) {
  return is_given(name) || begins_with(name, {"XDG_", "SSH_"}) ||
         is_one_of(name, {"HOME",
                          "USER",
                          "LOGNAME",
                          "MAIL",
                          "SHELL",
                          "SHLVL",
                          "PWD",
                          "OLDPWD",
                          "_",
                          "HOSTNAME",
                          "TERM",
                          "DISPLAY",
                          "TMPDIR",
                          "TMP",
                          "TEMP",
                          "CUDA_VISIBLE_DEVICES",
                          "NVIDIA_VISIBLE_DEVICES",
                          "HIP_VISIBLE_DEVICES",
                          "ROCR_VISIBLE_DEVICES",
                          "GPU_DEVICE_ORDINAL",
                          "ZE_AFFINITY_MASK"});
}

Environment to_send(const Environment& own) {
  Environment sent;
  for (const auto& [name, value] : own)
    // The secrets stay: the peer has them, or would not listen.
    if ((!is_of_node(name) || is_given(name)) && !name.starts_with("SLIPWAY_START_") &&
        name != "SLIPWAY_GANG_KEY")
      sent.emplace(name, value);
  return sent;
}

Environment merge(const Environment& own, const Environment& sent) {
  Environment merged = own;
  for (const auto& [name, value] : sent) {
    if (is_of_node(name))
      merged.emplace(name, value);
    else
      merged.insert_or_assign(name, value);
  }
  return merged;
}

std::vector<std::string> to_export(const Environment& own) {
  std::vector<std::string> names;
  for (const auto& [name, value] : own)
    if (is_plain(name) && !is_of_node(name) &&
        !begins_with(name, {"OMPI_", "PMIX_", "PMI_", "ORTE_", "PRTE_", "HYDRA_", "HYDI_", "MPIEXEC_", "LC_",
                            "I_MPI_HYDRA_"}))
      names.push_back(name);
  return names;
}

}  // namespace slipway::gang_exec
