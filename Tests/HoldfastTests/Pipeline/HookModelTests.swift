// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastTesting
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Laws 1 and 3 for any hooks: each moment, with the right request", .timeLimit(.minutes(20)))
struct HookModelTests {
    private func outcome(_ pipeline: Pipeline) async -> HookModel.Outcome {
        do {
            let response = try await pipeline.send(.get())
            return .response(response.fields["Maker"] ?? "", path: response.url?.path ?? "")
        } catch is CancellationError {
            return .error("cancelled")
        } catch {
            return .error((error as? Refused)?.reason ?? "origin")
        }
    }

    @Test(
        "Up to five hooks that each pass, edit, answer, refuse or rescue",
        arguments: 1...8 as ClosedRange<UInt64>
    )
    func anyHooks(_ seed: UInt64) async {
        var random = SeededGenerator(seed: seed)
        for round in 0..<400 {
            let model = HookModel(using: &random)
            let log = HookLog()
            let transport = ScriptedTransport { request in
                log.add("send \(request.url?.path ?? "")")
                return switch model.sending {
                case .answers: .respond(200, ["Maker": "origin"])
                case .fails: .fail(progress: .bodySent)
                case .cancels: .fail(CancellationError())
                }
            }
            let pipeline = Pipeline(transport: transport, hooks: model.hooks(log))
            let expected = model.expected
            // More than once, since by then the chain knows which moments are defaults.
            for call in 1...3 {
                let before = log.entries.count
                let seen = await outcome(pipeline)
                let note: Comment = "seed \(seed), round \(round), call \(call): \(model)"
                #expect(seen == expected.outcome, note)
                #expect(Array(log.entries.dropFirst(before)) == expected.log, note)
            }
        }
    }

    @Test("If nothing was sent, each of five hooks gets the request as it left it, no matter who edited it below")
    func leftRequests() async throws {
        let log = HookLog()
        func hook(_ name: String, edits: Bool = true) -> RecordingHook {
            var hook = RecordingHook(name: name, log: HookLog())
            hook.schedule = { request, _ in
                if edits { request.setValue(name, forHTTPHeaderField: "X-\(name)") }
                return nil
            }
            hook.success = { _, request in
                let fields = (request.allHTTPHeaderFields ?? [:]).keys.sorted().joined(separator: " ")
                log.add("\(name): \(fields)")
            }
            return hook
        }
        var answering = RecordingHook(name: "answers", log: HookLog())
        answering.schedule = { request, _ in
            request.setValue("1", forHTTPHeaderField: "X-Answered")
            return Response(status: .ok)
        }
        let hooks = [hook("A"), hook("B", edits: false), hook("C"), hook("D"), hook("E"), answering]
        let pipeline = Pipeline(transport: ScriptedTransport([]), hooks: hooks)
        _ = try await pipeline.send(.get())
        #expect(log.entries == ["E: X-A X-C X-D X-E", "D: X-A X-C X-D", "C: X-A X-C", "B: X-A", "A: X-A"])
    }

    @Test("Work below a hook outside its caller's task ends with that hook's own final moment")
    func forwarded() async throws {
        let log = HookLog()
        func hook(_ name: String) -> RecordingHook {
            var hook = RecordingHook(name: name, log: log)
            hook.schedule = { request, _ in
                request.url = request.url.flatMap { URL(string: $0.absoluteString + name) }
                return nil
            }
            hook.success = { _, request in log.add("\(name) got \(request.url?.path ?? "")") }
            return hook
        }
        var forwarding = hook("f")
        forwarding.schedule = { request, context in
            request.url = request.url.flatMap { URL(string: $0.absoluteString + "f") }
            let chain = try #require(context.chain)
            return try await chain.forward(request, below: context.currentHook, context: &context)
        }
        var answering = hook("x")
        answering.schedule = { request, _ in
            request.url = request.url.flatMap { URL(string: $0.absoluteString + "x") }
            return Response(status: .ok, source: .fresh)
        }
        let hooks: [any ServiceHook] = [hook("a"), forwarding, hook("b"), hook("c"), answering]
        let response = try await Pipeline(transport: ScriptedTransport([]), hooks: hooks).send(.get())
        #expect(response.url?.path == "/aafbcx")
        #expect(
            log.entries == [
                "a.schedule", "f.schedule", "b.schedule", "c.schedule", "x.schedule",
                "c.success(200, fresh)", "c got /aafbc", "b.success(200, fresh)", "b got /aafb",
                "f.success(200, fresh)", "f got /aaf", "a.success(200, fresh)", "a got /aa",
            ]
        )
    }
}
