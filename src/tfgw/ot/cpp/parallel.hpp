// Runs independent items on several threads. Threads live for one call: nothing survives a fork, and the cost of
// starting them (tens of microseconds) is small beside a batch of solves.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace tfgw {

// Calls make_worker() once per thread and the result with each item index in [0, items). Items are handed out in
// order, one at a time; what an item computes must not depend on which thread runs it. The caller is a thread too.
template <class MakeWorker>
void parallel_for(int64_t items, int threads, MakeWorker make_worker) {
  std::atomic<int64_t> next{0};
  std::exception_ptr failure;
  std::mutex failure_mutex;
  const auto run = [&] {
    try {
      auto worker = make_worker();
      for (int64_t item; (item = next.fetch_add(1, std::memory_order_relaxed)) < items;) worker(item);
    } catch (...) {
      const std::lock_guard<std::mutex> lock(failure_mutex);
      failure = std::current_exception();
      next.store(items);
    }
  };
  const int helpers = int(std::min<int64_t>(threads, items)) - 1;
  std::vector<std::thread> pool;
  for (int t = 0; t < helpers; ++t) pool.emplace_back(run);
  run();
  for (std::thread& t : pool) t.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace tfgw
