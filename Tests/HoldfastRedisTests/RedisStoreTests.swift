// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis
    import Testing

    @testable import HoldfastRedis

    @Suite("RedisStore")
    struct RedisStoreTests {
        @Test("hiredis is there")
        func version() { #expect(hiredisVersion.0 >= 0) }
    }
#endif
