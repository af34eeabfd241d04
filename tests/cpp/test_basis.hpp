#pragma once

namespace tfgw::test {

void test_bases();

}  // namespace tfgw::test
