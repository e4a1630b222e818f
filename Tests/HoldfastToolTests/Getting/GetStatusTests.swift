// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    import ArgumentParser
    import Foundation
    import Holdfast
    import HoldfastCommand
    import HoldfastTesting
    import Testing

    @testable import HoldfastTool

    @Suite("holdfast get: exit status and retries", .timeLimit(.minutes(20)))
    struct GetStatusTests {
        @Test("A 503 with Retry-After is retried, not before the server permits it, and -v shows both attempts")
        func retries() async throws {
            let bed = try GetBed { request in
                request.number == 0
                    ? LoopbackReply(503, fields: [("Retry-After", "2")], body: "busy") : LoopbackReply(body: "at last")
            }
            let clock = ManualClock(autoAdvances: true)
            // Without a limit to an attempt nothing sleeps but the wait between two of them.
            let outcome = try await bed.run(["/a", "-v", "--no-cache", "--timeout", "0"], clock: clock)
            #expect(outcome.status == 0 && outcome.output == "at last")
            #expect(bed.server.requests.count == 2)
            #expect(clock.now.sinceOrigin >= .seconds(2), "\(clock.waits)")
            #expect(outcome.error.contains("attempt 1: status 503"))
            #expect(outcome.error.contains("the server asked for 2 s (Retry-After)"))
            #expect(outcome.error.contains("2 attempts"))
        }

        @Test("--retry none sends once; the response is printed and its status decides")
        func none() async throws {
            let bed = try GetBed { _ in LoopbackReply(503, body: "busy") }
            let outcome = try await bed.run(["/a", "--retry", "none"])
            #expect(outcome.status == 22 && outcome.output == "busy" && bed.server.requests.count == 1)
        }

        @Test("HTTP failures exit with 22, network failures with 7x")
        func statuses() async throws {
            let bed = try GetBed { request in
                switch request.path {
                case "/reset": LoopbackReply(before: [.reset])
                case "/garbage": LoopbackReply(before: [.raw("SSH-2.0-hello\r\n\r\n"), .close])
                case "/short": LoopbackReply(framing: .length(1_000), steps: [.send("abc"), .close])
                case "/loop": LoopbackReply(302, fields: [("Location", "/loop")])
                case "/404": LoopbackReply(404, body: "none")
                default: LoopbackReply(body: "ok")
                }
            }
            for (target, status) in [
                ("/ok", 0), ("/404", 22), ("/reset", 74), ("/garbage", 74), ("/short", 74), ("/loop", 76),
            ] {
                let outcome = try await bed.run([target, "-L", "--retry", "none"])
                #expect(outcome.status == Int32(status), "\(target): \(outcome.error)")
                #expect(outcome.error.split(separator: "\n").count == (status < 23 ? 0 : 1), "\(outcome.error)")
            }
            let refused = try await bed.run([
                "http://127.0.0.1:\(try LoopbackServer.refusingPort())/", "--retry", "none",
            ])
            #expect(refused.status == 72, "\(refused.error)")
        }

        @Test("--deadline ends a call without a response")
        func deadline() async throws {
            let bed = try GetBed { _ in .never }
            let outcome = try await bed.run(
                ["/a", "--deadline", "5s", "--timeout", "0"],
                clock: ManualClock(autoAdvances: true)
            )
            #expect(outcome.status == 75, "\(outcome.error)")
        }

        @Test("All of several URLs are fetched, and the first failure gives the status")
        func several() async throws {
            let bed = try GetBed { request in
                request.path == "/404" ? LoopbackReply(404, body: "none ") : LoopbackReply(body: "ok ")
            }
            let closed = "http://127.0.0.1:\(try LoopbackServer.refusingPort())/"
            let outcome = try await bed.run(["/a", "/404", closed, "/b", "--retry", "none"])
            #expect(outcome.status == 22 && outcome.output == "ok none ok ")
        }

        @Test("--fail prints no body of a failure")
        func fail() async throws {
            let bed = try GetBed { _ in LoopbackReply(404, body: "none") }
            let outcome = try await bed.run(["/a", "-f"])
            #expect(outcome.status == 22 && outcome.output.isEmpty && outcome.error.hasSuffix("status 404\n"))
        }

        @Test(
            "A URL without a scheme is requested over https, and over http on this machine",
            arguments: [
                ("example.com", "https://example.com"), ("example.com:8443/a:b", "https://example.com:8443/a:b"),
                ("localhost:80?a", "http://localhost:80?a"), ("127.0.0.1/x", "http://127.0.0.1/x"),
                ("[::1]:8080/", "http://[::1]:8080/"), ("[2001:db8::1]/", "https://[2001:db8::1]/"),
                ("ftp://a/", "ftp://a/"), ("mailto:a@b", "mailto:a@b"), ("http://a?b=c://d", "http://a?b=c://d"),
                ("example.com/?to=https://a/", "https://example.com/?to=https://a/"),
                ("localhost:80/fetch?url=http://x/", "http://localhost:80/fetch?url=http://x/"),
            ]
        )
        func scheme(_ typed: String, _ asked: String) {
            #expect(GetRequest.withScheme(typed) == asked)
        }

        @Test(
            "An invalid URL, field or method gives one line and status 64, before anything is sent",
            arguments: [
                ["mailto:a@example.com"], ["ftp://example.com/"], ["http://"], ["http://a b/"],
                ["/", "-H", "no colon"],
                ["/", "-H", "a b: c"],
                ["/", "-H", "a: b\r\nc: d"], ["/", "-X", "GE T"], ["/", "-o", ""],
            ]
        )
        func usage(_ words: [String]) async throws {
            let bed = try GetBed { _ in LoopbackReply(body: "ok") }
            let failure = await #expect(throws: CommandFailure.self) { _ = try await bed.run(words) }
            #expect(failure?.exitStatus == 64)
            #expect(failure?.description.contains("\n") == false)
            #expect(bed.server.requests.isEmpty)
        }

        @Test(
            "A command line that contradicts itself is refused",
            arguments: [
                ["/", "-o", "a", "-o", "b"], ["/", "-o", "a", "-O"], ["/", "-I", "-d", "x"],
                ["/", "--no-cache", "--only-if-cached"],
                ["/", "--reload", "--only-if-cached"], ["/", "--max-redirects", "99"], ["/", "/", "-d", "@-"], [],
            ]
        )
        func contradictions(_ words: [String]) {
            #expect(throws: (any Error).self) { _ = try GetCommand.parse(words) }
            let status = Result { try GetCommand.parse(words) }
            guard case .failure(let error) = status else { return }
            #expect(GetCommand.exitCode(for: error).rawValue == 64)
        }

        @Test("The help lists every exit status")
        func help() {
            let help = GetCommand.helpMessage()
            for status in [22, 64, 70, 71, 72, 73, 74, 75, 76, 77, 130] {
                #expect(help.contains("\(status)"), "\(status)")
            }
        }
    }
#endif
