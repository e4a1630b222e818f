// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool && os(Linux)
    import Foundation
    import Glibc
    import HoldfastTesting
    import Testing

    @testable import HoldfastTool

    /// The log on devices that are full and outputs that nobody reads: the proxy goes on, and the log stays readable.
    @Suite("The log on a full device", .timeLimit(.minutes(20)))
    struct LogDeviceTests {
        private func origin() throws -> LoopbackServer {
            try LoopbackServer.start { _ in LoopbackReply(body: "body") }
        }

        private func arguments(_ origin: LoopbackServer, _ options: [String]) -> [String] {
            ["proxy", "--listen", "127.0.0.1:0", "--origin", "http://127.0.0.1:\(origin.port)", "--log", "json"]
                + options
        }

        /// A target whose line is long.
        private func target(_ number: Int) -> String { "/\(number)?" + String(repeating: "x", count: 1_000) }

        /// Mounts a file system of 32 KiB at a folder, for the program alone, with a file in it that takes half of it.
        private static func smallDevice(_ folder: String) -> [String] {
            [
                "unshare", "--map-root-user", "--mount", "sh", "-c",
                "mount -t tmpfs -o size=32k tmpfs \"$0\" && head -c 16384 /dev/zero >\"$0/other\" && exec \"$@\"",
                folder,
            ]
        }

        private static let canMount: Bool = {
            guard let folder = try? TestFolder() else { return false }
            return ToolProcess.has(smallDevice(folder.path("")))
        }()

        @Test(
            "A full device costs lines and is reported once; when there is room again, the next line is a line of its own",
            .enabled(if: canMount, "skipped: this user cannot mount a file system for a process")
        )
        func fullAndFree() async throws {
            let origin = try origin()
            defer { origin.stop() }
            let folder = try TestFolder()
            let place = folder.path("")
            let proxy = try ToolProcess(
                arguments(origin, ["--log-file", place + "/log"]),
                wrapper: Self.smallDevice(place)
            )
            let port = try await proxy.port()
            let seen = "/proc/\(proxy.pid)/root" + place
            var number = 0
            func ask() async throws {
                number += 1
                let answer = try await RawExchange.get(target(number), port: port)
                #expect(answer.hasPrefix("HTTP/1.1 200 "), "\(answer.prefix(100))")
            }
            while !proxy.errorText.contains("cannot write the log") { try await ask() }
            for _ in 1...20 { try await ask() }
            try FileManager.default.removeItem(atPath: seen + "/other")
            try await ask()
            var lines: [Substring] = []
            // The lines are written after the answers, by another thread.
            while !(lines.last ?? "").contains("\"target\":\"/\(number)?") {
                await Task.yield()
                let text = (try? String(contentsOfFile: seen + "/log", encoding: .utf8)) ?? ""
                lines = text.hasSuffix("\n") ? text.split(separator: "\n") : []
            }
            let objects = lines.map { try? JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any] }
            // One line was cut off where the device was full, unless it was full at the end of a line.
            #expect(objects.count { $0 == nil } <= 1)
            let loss = try #require(objects.firstIndex { $0?["lost"] != nil })
            let lost = try #require(objects[loss]?["lost"] as? Int)
            #expect(
                lost >= 1 && objects.count { $0?["status"] as? Int == 200 } + lost == number,
                "\(lost) of \(number); \(objects.map { $0?["lost"] ?? $0?["status"] ?? "cut off" })"
            )
            #expect(objects[(loss + 1)...].allSatisfy { $0?["status"] as? Int == 200 })
            #expect(proxy.errorText.split(separator: "\n").count { $0.contains("cannot write the log") } == 1)
            #expect(try await proxy.end() == 0)
        }

        @Test("Wherever a device cuts lines off, each of them is in the log or is counted as lost", arguments: 1...20)
        func cuts(_ seed: UInt64) {
            var generator = SeededGenerator(seed: seed)
            for _ in 0..<200 {
                var (end, log, count) = (LogFile.End(), Data(), 0)
                for round in 0...6 {
                    let lines = (0..<Int.random(in: 1...3, using: &generator)).map { "<line \(count + $0)>\n" }
                    count += lines.count
                    let opening = end.opening { Data("<lost \($0)>\n".utf8) }
                    let all = opening + Data(lines.joined().utf8)
                    let written = round == 6 ? all.count : Int.random(in: 0...all.count, using: &generator)
                    log += all.prefix(written)
                    end.note(written, of: all, opening: opening.count)
                }
                let lines = String(decoding: log, as: UTF8.self).split(separator: "\n")
                let there = Set(lines.filter { $0.wholeMatch(of: /<line \d+>/) != nil })
                let lost = lines.compactMap { $0.wholeMatch(of: /<lost (\d+)>/).flatMap { Int($0.output.1) } }
                #expect(there.count + lost.reduce(0, +) == count, "seed \(seed): \(lines)")
                #expect(end == LogFile.End())
            }
        }

        @Test("A full standard output is reported, once, and ends nothing")
        func fullOutput() async throws {
            let origin = try origin()
            defer { origin.stop() }
            let proxy = try ToolProcess(arguments(origin, []), outputPath: "/dev/full")
            let port = try await proxy.port()
            for number in 1...3 {
                let answer = try await RawExchange.get(target(number), port: port)
                #expect(answer.hasPrefix("HTTP/1.1 200 "))
            }
            #expect(try await proxy.end() == 0)
            let told = proxy.errorText.split(separator: "\n").filter { $0.contains("cannot write the log") }
            #expect(
                told == [
                    "holdfast: cannot write the log to standard output: No space left on device; lines are lost until it can be written"
                ]
            )
        }

        @Test("An output that nobody reads blocks neither requests nor the end of the proxy")
        func unread() async throws {
            let origin = try origin()
            defer { origin.stop() }
            let folder = try TestFolder()
            let pipe = folder.path("pipe")
            #expect(mkfifo(pipe, 0o600) == 0)
            // The program holds both ends of the pipe, and so waits for nobody but itself.
            let proxy = try ToolProcess(
                arguments(origin, []),
                wrapper: ["sh", "-c", "exec 3<>\"$0\"; exec \"$@\" >&3", pipe]
            )
            let port = try await proxy.port()
            for number in 1...200 {
                let answer = try await RawExchange.get(target(number), port: port)
                #expect(answer.hasPrefix("HTTP/1.1 200 "))
            }
            let refused = try await RawExchange.ask(port: port, "nonsense\r\n\r\n")
            #expect(refused.hasPrefix("HTTP/1.1 400 "))
            // The log of failures does not wait for the other one.
            try await proxy.says("a request was rejected with 400")
            #expect(try await proxy.end() == 0)
        }

        @Test(
            "A line that a former process left unfinished is ended before the next one",
            arguments: ["{\"time\"", "{}\n"]
        )
        func unfinished(_ former: String) async throws {
            let folder = try TestFolder()
            let path = try folder.file("log", former)
            let file = try LogFile(path)
            #expect(file.write(Data("{}\n".utf8)) { _ in Data() } == nil)
            try file.reopen()
            #expect(file.write(Data("[]\n".utf8)) { _ in Data() } == nil)
            let whole = former.hasSuffix("\n") ? former : former + "\n"
            #expect(try String(contentsOfFile: path, encoding: .utf8) == whole + "{}\n[]\n")
        }
    }
#endif
