#pragma once

// Catch2 3 has one header for everything, Debian 12's Catch2 2 another.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
