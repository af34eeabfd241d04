// Runs independent items on several threads. Threads live for one call: nothing survives a fork, and the cost of
// starting them (tens of microseconds) is small beside a batch of solves.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace tfgw {

// Calls make_worker() once per thread and the result with each item index in [0, items). Items are handed out in
// order, one at a time; what an item computes must not depend on which thread runs it. The caller is a thread too;
// once out of items, it calls idle() now and then until the others are done.
template <class MakeWorker, class Idle>
void parallel_for(int64_t items, int threads, MakeWorker make_worker, Idle idle) {
  std::atomic<int64_t> next{0};
  std::exception_ptr failure;
  std::mutex mutex;
  std::condition_variable finished;
  const int helpers = int(std::min<int64_t>(threads, items)) - 1;
  int busy = 0;

  const auto run = [&] {
    try {
      auto worker = make_worker();
      for (int64_t item; (item = next.fetch_add(1, std::memory_order_relaxed)) < items;) worker(item);
    } catch (...) {
      const std::lock_guard<std::mutex> lock(mutex);
      failure = std::current_exception();
      next.store(items);
    }
  };
  const auto help = [&] {
    run();
    const std::lock_guard<std::mutex> lock(mutex);
    if (--busy == 0) finished.notify_one();
  };
  std::vector<std::thread> pool;
  pool.reserve(size_t(std::max(helpers, 0)));
  try {
    while (int(pool.size()) < helpers) {
      pool.emplace_back(help);
      const std::lock_guard<std::mutex> lock(mutex);
      ++busy;
    }
  } catch (const std::system_error&) {
    // The system has no more threads to give: those that there are do the work.
  }
  run();
  {
    std::unique_lock<std::mutex> lock(mutex);
    while (!finished.wait_for(lock, std::chrono::milliseconds(20), [&] { return busy == 0; })) {
      lock.unlock();
      idle();
      lock.lock();
    }
  }
  for (std::thread& t : pool) t.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace tfgw
