// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis

    import HoldfastStorage
    import Testing

    @testable import HoldfastRedis

    @Suite("RedisAddress")
    struct RedisAddressTests {
        @Test(
            "Valid addresses",
            arguments: [
                ("redis://localhost", "localhost:6379/0"), ("redis://u:p%40w@h:7/3", "h:7/3"),
                ("valkey://h", "h:6379/0"),
                ("redis://[::1]:6380", "[::1]:6380/0"), ("unix:///run/redis.sock?db=2", "/run/redis.sock, database 2"),
            ]
        )
        func reads(_ text: String, _ shown: String) throws {
            let address = try RedisAddress(text)
            #expect(address.description == shown)
        }

        @Test("A password is parsed and never shown")
        func password() throws {
            let address = try RedisAddress("redis://u:p%40w@h")
            #expect(address.user == "u" && address.password == "p@w")
            #expect(!address.description.contains("p@w"))
        }

        @Test(
            "Invalid addresses",
            arguments: [
                "", "localhost", "redis://", "redis://h:0", "redis://h/x", "redis://h/-1", "http://h", "rediss://h",
                "unix://h",
            ]
        )
        func refuses(_ text: String) {
            do throws(StoreError) {
                _ = try RedisAddress(text)
                Issue.record("taken: \(text)")
            } catch {
                #expect(error.code == .badConfiguration)
            }
        }
    }

    @Suite("The digest of a script")
    struct ScriptDigestTests {
        @Test(
            "SHA-1 as in FIPS 180-4",
            arguments: [
                ("", "da39a3ee5e6b4b0d3255bfef95601890afd80709"), ("abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
                (
                    "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                    "84983e441c3bd26ebaae4aa1f95129e5e54670f1"
                ),
            ]
        )
        func vectors(_ text: String, _ digest: String) {
            #expect(ScriptDigest(of: Array(text.utf8)).hex == digest)
        }
    }
#endif
