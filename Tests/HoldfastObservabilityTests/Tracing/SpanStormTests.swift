// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Observability
    import Foundation
    import Holdfast
    import HoldfastObservability
    import HoldfastTesting
    import InMemoryTracing
    import Testing

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    /// Calls that end in every way there is: each span ends once, and none is left.
    @Suite(.timeLimit(.minutes(20))) struct SpanStormTests {
        /// Answers, fails or cancels where the path says so.
        private struct MoodyHook: ServiceHook {
            func onSchedule(_ request: inout URLRequest, _ context: inout CallContext) async throws -> Response? {
                switch request.url?.path {
                case "/answered": return Response(status: .ok)
                case "/refused": throw ServiceError(.badRequest, "refused")
                case "/cancelled": throw CancellationError()
                default: return nil
                }
            }

            func onSuccess(
                _ response: inout Response,
                _ request: URLRequest,
                _ context: inout CallContext
            ) async throws {
                if request.url?.path == "/late" { throw ServiceError(.decodingFailed, "late") }
            }
        }

        @Test("Ten thousand calls with random endings leave no span open and end none twice")
        func storm() async throws {
            let seed: UInt64 = 0x570A_2216
            var generator = SeededGenerator(seed: seed)
            let fresh: HeaderFields = ["Cache-Control": "max-age=60"]
            let transport = ScriptedTransport(answering: { request in
                switch request.url?.path {
                case "/fails": .fail(progress: .notSent)
                case "/throws": throw URLError(.badServerResponse)
                case "/broken": .stream(chunks: ["a"], failure: ServiceError(.connectionLost, "broken"))
                case "/redirected": .respond(302, ["Location": "/fine"])
                case "/forbidden": .respond(403)
                default: .respond(200, fresh, body: "x")
                }
            })
            let tracer = InMemoryTracer(recordInjections: false)
            var configuration = PipelineConfiguration()
            configuration.clock = ManualClock(autoAdvances: true)
            var options = ObserverOptions()
            options.parts = .traces
            configuration.observe(with: PipelineObserver(tracer: tracer, options: options))
            let pipeline = Pipeline(
                transport: transport,
                cache: .inMemory(capacity: 1 << 16),
                hooks: [MoodyHook()],
                configuration: configuration
            )
            let paths = [
                "fine", "fails", "throws", "broken", "redirected", "forbidden", "answered", "refused", "cancelled",
                "late", "stopped",
            ]
            let calls = 10_000
            let batch = 500
            for _ in 0..<calls / batch {
                let chosen = (0..<batch).map { _ in paths.randomElement(using: &generator) ?? "fine" }
                await withTaskGroup(of: Void.self) { group in
                    for path in chosen {
                        guard let url = URL(string: "https://example.com/\(path)") else { continue }
                        group.addTask {
                            let call = Task {
                                let response = try await pipeline.send(URLRequest(url: url))
                                _ = try await response.body.collect()
                            }
                            if path == "stopped" { call.cancel() }
                            _ = await call.result
                        }
                    }
                }
            }
            await pipeline.drain()
            let spans = tracer.finishedSpans
            #expect(tracer.activeSpans.isEmpty, "seed \(seed)")
            #expect(spans.count { "\($0.kind)" == "internal" } == calls)
            #expect(Set(spans.map(\.spanID)).count == spans.count)
        }
    }
#endif
