// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    import Foundation
    import HoldfastSimulation
    import HoldfastStorage
    import HoldfastTestKit
    import HoldfastTesting
    import Testing

    @testable import HoldfastTool

    @Suite("Replays", .timeLimit(.minutes(20)))
    struct ReplayRunTests {
        private static func input(_ trace: RequestTrace) -> InputReader.Input {
            var account = InputStatistics()
            account.requests = trace.requests.count
            return InputReader.Input(
                format: .trace,
                account: account,
                trace: trace,
                rate: 1,
                cut: 0
            )
        }

        @Test("Requests that are cut at the memory limit change no share")
        func cut() {
            var trace = RequestTrace()
            for key in 0..<1_000 as Range<Int> { trace.append(key: UInt64(key), size: 1) }
            var account = InputStatistics()
            account.requests = 4_000
            for _ in 0..<2_000 { account.addUnstored("status 404", bytes: 2) }
            let input = InputReader.Input(
                format: .trace,
                account: account,
                trace: trace,
                rate: 1,
                cut: 1_000
            )
            let scale = ReplayScale(input)
            #expect(scale.objectShare == 0.5)
            #expect(abs(scale.byteShare - 1 / 3) < 1e-9)
        }

        @Test("LRU in one pass equals the simulation of LRU at every size", arguments: [1, 2, 3, 4] as [UInt64])
        func onePass(_ seed: UInt64) async throws {
            var generator = SeededGenerator(seed: seed)
            var trace = RequestTrace()
            for _ in 0..<5_000 {
                let key = Int.random(in: 0..<300, using: &generator) * Int.random(in: 0..<300, using: &generator) / 300
                trace.append(key: UInt64(key), size: UInt32(1 + key * 7_919 % 500))
            }
            let sizes = try #require(CacheSize.list("1%,2%,5%,10%,20%,50%,90%,100%,600,5kB"))
            let run = ReplayRun(
                trace: trace,
                scale: ReplayScale(Self.input(trace)),
                policies: [ReplayRun.lru],
                sizes: sizes,
                seed: 1,
                console: RecordedConsole().console
            )
            let outcome = try await run.run(width: 2)
            #expect(outcome.stack != nil)
            var simulator = HitRateSimulator()
            for cell in outcome.cells { simulator.add(.lru, capacity: cell.capacity) }
            simulator.replay(trace)
            for (cell, result) in zip(outcome.cells, simulator.results) {
                #expect(abs(cell.objectHitRatio - result.objectHitRatio) < 1e-9, "seed \(seed), \(cell.size)")
                #expect(abs(cell.byteHitRatio - result.byteHitRatio) < 1e-9, "seed \(seed), \(cell.size)")
            }
        }

        @Test("A sample predicts nearly what the whole does, and its sizes are scaled to the whole")
        func sample() async throws {
            let folder = try TestFolder()
            var generator = SeededGenerator(seed: 5)
            var bytes: [UInt8] = []
            for _ in 0..<40_000 {
                let key =
                    Int.random(in: 0..<5_000, using: &generator) * Int.random(in: 0..<5_000, using: &generator) / 5_000
                withUnsafeBytes(of: UInt64(key).littleEndian) { bytes += $0 }
                withUnsafeBytes(of: UInt32(100).littleEndian) { bytes += $0 }
            }
            try Data(bytes).write(to: folder.url.appendingPathComponent("made.trace"))
            let words = [folder.path("made.trace"), "--sizes", "10%,50kB", "--policies", "lru,s3fifo"]
            let whole = try await ReplayOutput(words)
            let sample = try await ReplayOutput(words + ["--keep", "12000"])
            #expect(sample.assumptions.contains { $0.contains("Only 1 in 4 objects") })
            for (size, policy) in [("@10%", "lru"), ("@50kB", "lru"), ("@10%", "s3fifo"), ("@50kB", "s3fifo")] {
                let exact = try #require(whole.value("object-hit-ratio", size, policy))
                let guess = try #require(sample.value("object-hit-ratio", size, policy))
                #expect(abs(exact - guess) < 0.05, "\(size) \(policy): \(exact) \(guess)")
            }
        }

        /// Ratios of libCacheSim for traces that lie beside the project, if they do.
        private static let traces = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("../shared/traces").standardizedFileURL

        @Test(
            "Public traces have the published hit ratios",
            .enabled("the traces lie beside the project") { FileManager.default.fileExists(atPath: traces.path) },
            arguments: ["lirs_multi3", "c2k_web07"]
        )
        func baselines(_ name: String) async throws {
            let table = String(
                decoding: try Data(contentsOf: Self.traces.appendingPathComponent("baselines-open.csv")),
                as: UTF8.self
            )
            let found = try await ReplayOutput([
                Self.traces.appendingPathComponent("\(name).trace").path, "--sizes", "1%,10%",
                "--policies", "lru,fifo,sieve,s3fifo,belady",
            ])
            var compared = 0
            for line in table.split(whereSeparator: \.isNewline) {
                let cells = line.split(separator: ",").map(String.init)
                guard cells.count > 5, cells[0] == name, cells[5] == "lcs",
                    let size = ["0.01": "@1%", "0.1": "@10%"][cells[1]],
                    let value = found.value("object-hit-ratio", size, cells[2]), let known = Double(cells[3])
                else { continue }
                compared += 1
                #expect(abs(value - known) < 0.001, "\(line): \(value)")
            }
            #expect(compared == 10)
        }

        @Test("In a sample, hits and stale copies are shares of the same requests")
        func sampledExpiry() throws {
            var trace = RequestTrace()
            for second in 0..<10 as Range<Int64> {
                let now = StoreInstant(milliseconds: second * 1_000)
                trace.append(key: 1, size: 1, at: now, freshUntil: now)
            }
            var account = InputStatistics()
            account.requests = 40
            let input = InputReader.Input(format: .log, account: account, trace: trace, rate: 0.5, cut: 0)
            var simulator = HitRateSimulator()
            simulator.add(.lru, capacity: 10)
            simulator.replay(trace)
            let cell = ReplayScale(input).cell(
                ReplayRun.lru,
                size: try #require(CacheSize("10")),
                capacity: 10,
                result: try #require(simulator.results.first)
            )
            #expect(cell.objectHitRatio == 0.5)
            #expect(abs(cell.expiredRatio - 0.45) < 1e-9)
        }

        @Test("As many replays run at a time as were asked for, also more than four")
        func width() async throws {
            let arrived = CountWatch()
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for _ in 0..<6 {
                    group.addTask {
                        try await ReplayRun.onThread {
                            arrived.increment()
                            let end = ContinuousClock.now + .seconds(60)
                            while arrived.count < 6, ContinuousClock.now < end {
                                Thread.sleep(forTimeInterval: 0.01)
                            }
                            return arrived.count == 6
                        }
                    }
                }
                for try await all in group { #expect(all) }
            }
        }

        @Test("The rate beside a recorded trace scales its sizes")
        func recordedRate() async throws {
            let folder = try TestFolder()
            var trace = RequestTrace()
            for key in [1, 2, 1, 2] as [UInt64] { trace.append(key: key, size: 100) }
            let path = folder.path("made.trace")
            try trace.write(to: path)
            _ = try folder.file("made.trace.rate", "0.5\n")
            let found = try await ReplayOutput([path, "--sizes", "200,400", "--policies", "lru"])
            #expect(found.count("working-set-bytes") == 400)
            #expect(found.value("object-hit-ratio", "@200", "lru") == 0)
            #expect(found.value("object-hit-ratio", "@400", "lru") == 0.5)
            _ = try folder.file("made.trace.rate", "1e-300\n")
            #expect(
                try await ReplayOutput([path, "--sizes", "400", "--policies", "lru"]).count("working-set-bytes") != nil
            )
        }
    }
#endif
