// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    import Testing

    @testable import HoldfastTool

    @Suite("ByteCount")
    struct ByteCountTests {
        @Test(
            "Sizes as people write them",
            arguments: [
                ("512", 512), ("0", 0), ("64MB", 64_000_000), ("64mb", 64_000_000), ("1.5GiB", 1_610_612_736),
                ("2k", 2_000),
                ("3 KiB", 3_072), ("1TB", 1_000_000_000_000),
            ]
        )
        func reads(_ text: String, _ bytes: Int) {
            #expect(ByteCount(argument: text)?.bytes == bytes)
        }

        @Test(
            "Invalid sizes are refused",
            arguments: ["", "MB", "-1", "1.2.3MB", "5 parsecs", "99999999999TB", "0x10", "nan", "inf"]
        )
        func refuses(_ text: String) {
            #expect(ByteCount(argument: text) == nil)
        }

        @Test(
            "Sizes as people read them",
            arguments: [
                (0, "0 B"), (999, "999 B"), (1_000, "1 kB"), (1_550, "1.6 kB"), (999_960, "1 MB"),
                (64_000_000, "64 MB"),
            ]
        )
        func writes(_ bytes: Int, _ text: String) {
            #expect(ByteCount(bytes).description == text)
        }
    }

    @Suite("TimeSpan")
    struct TimeSpanTests {
        @Test(
            "Durations as people write them",
            arguments: [
                ("2", 2_000), ("250ms", 250), ("1.5s", 1_500), ("10m", 600_000), ("1h", 3_600_000), ("7d", 604_800_000),
            ]
        )
        func reads(_ text: String, _ milliseconds: Int64) {
            #expect(TimeSpan(argument: text)?.duration == .milliseconds(milliseconds))
        }

        @Test("Invalid durations are refused", arguments: ["", "s", "-1s", "1 fortnight", "1e9", "99999999999d"])
        func refuses(_ text: String) {
            #expect(TimeSpan(argument: text) == nil)
        }

        @Test(
            "Durations as people read them",
            arguments: [("0", "0s"), ("250ms", "250ms"), ("90", "90s"), ("120", "2m"), ("24h", "1d")]
        )
        func writes(_ text: String, _ shown: String) {
            #expect(TimeSpan(argument: text)?.description == shown)
        }
    }
#endif
