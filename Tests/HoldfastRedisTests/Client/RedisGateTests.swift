// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis

    import HoldfastStorage
    import Testing

    @testable import HoldfastRedis

    @Suite("RedisGate")
    struct RedisGateTests {
        private let start = ContinuousClock.now

        @Test("After a failure no call is let through, then one, and after its success all")
        func probing() {
            var gate = RedisGate(firstRest: .milliseconds(100), longestRest: .seconds(1))
            let answer1 = gate.admits(now: start)
            #expect(answer1)
            gate.noteFailure(now: start, share: 1)
            #expect(!gate.isOpen)
            let answer2 = gate.admits(now: start + .milliseconds(99))
            #expect(!answer2)
            let answer3 = gate.admits(now: start + .milliseconds(100))
            #expect(answer3)
            let answer4 = gate.admits(now: start + .milliseconds(101))
            #expect(!answer4, "two are let through to find out")
            gate.noteSuccess()
            #expect(gate.isOpen)
            let answer5 = gate.admits(now: start + .milliseconds(102))
            #expect(answer5)
        }

        @Test("Each failed probe doubles the wait, up to a limit")
        func doubling() {
            var gate = RedisGate(firstRest: .milliseconds(100), longestRest: .milliseconds(350))
            var now = start
            gate.noteFailure(now: now, share: 1)
            for rest in [100, 200, 350, 350] {
                let answer6 = gate.admits(now: now + .milliseconds(rest - 1))
                #expect(!answer6, "\(rest)")
                now = now + .milliseconds(rest)
                let answer7 = gate.admits(now: now)
                #expect(answer7, "\(rest)")
                gate.noteFailure(now: now, share: 1)
            }
        }

        @Test("An answer to a command sent before the gate closed does not open it")
        func lateAnswer() {
            var gate = RedisGate(firstRest: .milliseconds(100), longestRest: .seconds(1))
            gate.noteFailure(now: start, share: 1)
            gate.noteSuccess()
            #expect(!gate.isOpen)
            let answer12 = gate.admits(now: start + .milliseconds(100))
            gate.noteSuccess()
            #expect(answer12)
            #expect(gate.isOpen)
        }

        @Test("If the caller that was to find out leaves before it has asked, the next one finds out")
        func left() {
            var gate = RedisGate(firstRest: .milliseconds(100), longestRest: .seconds(1))
            gate.noteFailure(now: start, share: 1)
            let answer10 = gate.admits(now: start + .milliseconds(100))
            gate.noteUnasked()
            #expect(!gate.isOpen)
            let answer11 = gate.admits(now: start + .milliseconds(101))
            #expect(answer10 && answer11)
        }

        @Test("Cancelled calls do not keep later ones from asking a server that was lost")
        func cancelled() async throws {
            var options = RedisClient.Options()
            (options.firstRest, options.longestRest) = (.zero, .zero)
            // Nothing listens there.
            let client = RedisClient(try RedisAddress("redis://127.0.0.1:1"), options: options)
            // Which of them leave before a thread takes them is the scheduler's choice; some do.
            for _ in 0..<100 {
                _ = try? await client.send(RedisCommand("PING"))
                await Task {
                    withUnsafeCurrentTask { $0?.cancel() }
                    _ = try? await client.send(RedisCommand("PING"))
                }.value
            }
            try await RedisFleetStoreTests.until("a call asks the server") {
                do throws(StoreError) {
                    _ = try await client.send(RedisCommand("PING"))
                    return false
                } catch {
                    return error.code == .io
                }
            }
            client.close()
        }

        @Test("A failure of an earlier request does not extend the wait; jitter takes off at most half")
        func late() {
            var gate = RedisGate(firstRest: .milliseconds(100), longestRest: .seconds(1))
            gate.noteFailure(now: start, share: 0)
            gate.noteFailure(now: start + .milliseconds(10), share: 1)
            let answer8 = gate.admits(now: start + .milliseconds(49))
            #expect(!answer8)
            let answer9 = gate.admits(now: start + .milliseconds(50))
            #expect(answer9)
        }
    }
#endif
