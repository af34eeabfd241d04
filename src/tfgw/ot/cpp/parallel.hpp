// Runs independent items on several threads. Threads wait for the next call, spinning at first: starting or waking a
// thread takes longer than solving a few pairs.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>

namespace tfgw {

// Work offered to idle threads. It must outlive its call of `run_with_helpers`.
struct Job {
  std::function<void()> work;   // run once by each helper, concurrently
  std::atomic<int> running{0};  // helpers at work
};

// Lets up to that many threads run `job.work` while the caller runs it too. Helpers that have not begun when the caller
// is done never will; while others are still running, the caller calls idle() now and then.
void run_with_helpers(Job& job, int helpers, const std::function<void()>& idle);

// Calls make_worker() once per thread and the result with each item index in [0, items). Items are handed out in
// order, one at a time; what an item computes must not depend on which thread runs it. The caller is a thread too.
template <class MakeWorker, class Idle>
void parallel_for(int64_t items, int threads, MakeWorker make_worker, Idle idle) {
  std::atomic<int64_t> next{0};
  std::exception_ptr failure;
  std::mutex failing;
  Job job;
  job.work = [&] {
    try {
      if (next.load(std::memory_order_relaxed) >= items) return;
      auto worker = make_worker();
      for (int64_t item; (item = next.fetch_add(1, std::memory_order_relaxed)) < items;) worker(item);
    } catch (...) {
      const std::lock_guard<std::mutex> lock(failing);
      failure = std::current_exception();
      next.store(items);
    }
  };
  run_with_helpers(job, int(std::min<int64_t>(threads, items)) - 1, idle);
  if (failure) std::rethrow_exception(failure);
}

}  // namespace tfgw
