// Interrupts a solve from outside: every thread polls, and the first to see the request notifies the others.
#pragma once

#include <atomic>

namespace tfgw {

class Interrupt {
 public:
  virtual ~Interrupt() = default;

  // True once the solve should stop. Called often, so `requested` must be cheap when it is not the caller's turn.
  bool poll() {
    if (!stopped_.load(std::memory_order_relaxed) && requested()) stopped_.store(true, std::memory_order_relaxed);
    return stopped_.load(std::memory_order_relaxed);
  }
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }

 protected:
  virtual bool requested() { return false; }

 private:
  std::atomic<bool> stopped_{false};
};

}  // namespace tfgw
