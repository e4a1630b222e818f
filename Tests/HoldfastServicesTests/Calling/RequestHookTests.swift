// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastServices
import HoldfastTesting
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

private typealias Log = CallFixtures.Log
private typealias NotingHook = CallFixtures.NotingHook

@Suite("Request hooks: order and outcomes", .timeLimit(.minutes(20)))
struct RequestHookTests {
    private let log = CallFixtures.Log()

    private func factoryThatIsNeverAsked() -> any RetrierFactory {
        AnyRetrierFactory { _ in
            Issue.record("a factory was asked")
            return NilRetrier()
        }
    }

    @Test("S-T6: a hook's value is the result: nothing is sent, and no other hook is called")
    func answers() async throws {
        let transport = ScriptedTransport([])
        var service = CallFixtures.service(log, hooks: [NotingHook(name: "a", log: log, answer: "kept")])
        service.retrierFactory = factoryThatIsNeverAsked()
        let answer = try await CallFixtures.client(service, transport).response(to: CallFixtures.text())
        #expect(answer.value == "kept")
        #expect(answer.response.source == .synthesized)
        #expect(transport.sent.isEmpty)
        #expect(log.entries == ["a.schedule"])
    }

    @Test("S-T7: a slow hook delays the sending")
    func slowHook() async throws {
        let transport = ScriptedTransport([.fail(progress: .notSent)])
        let clock = ManualClock(autoAdvances: true)
        var hook = NotingHook(name: "a", log: log, answer: "kept")
        hook.meanwhile = { try? await clock.sleep(until: clock.now.advanced(by: .milliseconds(100))) }
        let client = CallFixtures.client(CallFixtures.service(log, hooks: [hook]), transport, clock: clock)
        #expect(try await CallFixtures.text().schedule(with: client) == "kept")
        #expect(clock.waits == [.milliseconds(100)])
        #expect(transport.sent.isEmpty)
        #expect(log.entries == ["a.schedule"])
    }

    @Test("S-T11: onSuccess is called once, with the final request and the decoded result, before the caller continues")
    func success() async throws {
        let log = log
        struct Seed: RequestHook {
            let log: CallFixtures.Log
            func onSuccess<R: Request>(_ request: R, _ urlRequest: URLRequest, result: R.Result) {
                log.note("\(urlRequest.value(forHTTPHeaderField: "X") ?? "") \(result)")
            }
        }
        var request = CallFixtures.text()
        request.header = ["X": "r"]
        let transport = ScriptedTransport([.respond(200, body: "ok")])
        let client = CallFixtures.client(CallFixtures.service(log, hooks: [Seed(log: log)]), transport)
        #expect(try await request.schedule(with: client) == "ok")
        log.note("caller")
        #expect(log.entries == ["r ok", "caller"])
    }

    @Test("S-T12: a refused status is sent once, then reaches onFailure and process, and is thrown")
    func refused() async throws {
        let transport = ScriptedTransport([.respond(500)])
        let service = CallFixtures.service(log, hooks: [NotingHook(name: "a", log: log)])
        let error = await #expect(throws: ServiceError.self) {
            try await CallFixtures.text().schedule(with: CallFixtures.client(service, transport))
        }
        log.note("thrown")
        #expect(error?.code == .unacceptableStatus)
        #expect(error?.response?.status == .internalServerError)
        #expect(transport.sent.count == 1)
        #expect(
            log.entries == ["a.schedule", "a.failure(unacceptable-status)", "process(unacceptable-status)", "thrown"]
        )
    }

    @Test("S-T13: content that cannot be decoded is one failure, no success, and not retried")
    func undecodable() async throws {
        struct Broken: JsonRequest {
            typealias Result = Int
        }
        let transport = ScriptedTransport([.respond(200, body: "no number")])
        var service = CallFixtures.service(log, hooks: [NotingHook(name: "a", log: log)])
        service.retrierFactory = .default
        let error = await #expect(throws: ServiceError.self) {
            try await Broken().schedule(with: CallFixtures.client(service, transport))
        }
        #expect(error?.code == .decodingFailed)
        #expect(error?.message.contains("Int") == true)
        #expect(error?.cause is DecodingError)
        #expect(try await error?.response?.body.data() == Data("no number".utf8))
        #expect(transport.sent.count == 1)
        #expect(log.entries == ["a.schedule", "a.failure(decoding-failed)", "process(decoding-failed)"])
    }

    @Test("S-T36: a hook above the one that answered gets the success with its source, the others get nothing")
    func answeredBelow() async throws {
        let hooks = [
            NotingHook(name: "a", log: log), NotingHook(name: "b", log: log, answer: "kept"),
            NotingHook(name: "c", log: log),
        ]
        let client = CallFixtures.client(CallFixtures.service(log, hooks: hooks), ScriptedTransport([]))
        #expect(try await CallFixtures.text().schedule(with: client) == "kept")
        #expect(log.entries == ["a.schedule", "b.schedule", "a.success(kept, synthesized)"])
    }

    @Test("S-T36: the seed's onSuccess is not called for what another hook answered")
    func seedIsNotTold() async throws {
        struct Seed: RequestHook {
            func onSuccess<R: Request>(_ request: R, _ urlRequest: URLRequest, result: R.Result) {
                Issue.record("no server answered")
            }
        }
        let hooks: [any RequestHook] = [Seed(), NotingHook(name: "b", log: log, answer: "kept")]
        let client = CallFixtures.client(CallFixtures.service(log, hooks: hooks), ScriptedTransport([]))
        #expect(try await CallFixtures.text().schedule(with: client) == "kept")
    }

    @Test("Hooks are called down in order and up in reverse; the client's are below the service's")
    func order() async throws {
        let transport = ScriptedTransport([.respond(200, body: "ok"), .respond(404)])
        let client = ServiceClient(
            CallFixtures.service(log, hooks: [NotingHook(name: "a", log: log), NotingHook(name: "b", log: log)]),
            transport: transport,
            requestHooks: [NotingHook(name: "c", log: log)]
        )
        _ = try await CallFixtures.text().schedule(with: client)
        await #expect(throws: ServiceError.self) { try await CallFixtures.text().schedule(with: client) }
        let down = ["a.schedule", "b.schedule", "c.schedule"]
        let source = "network(attempts: 1)"
        #expect(
            log.entries == down + ["c", "b", "a"].map { "\($0).success(ok, \(source))" } + down
                + ["c", "b", "a"].map { "\($0).failure(unacceptable-status)" } + ["process(unacceptable-status)"]
        )
    }

    @Test("S-T39: the caller gets the error that mapError makes; hooks and process get the original")
    func mapped() async throws {
        enum ApiError: Error, Equatable { case notFound, other }
        struct Mapping: HttpService {
            let log: CallFixtures.Log
            var apiUrl: any UrlConvertible { "api.example.com" }
            var requestHooks: [any RequestHook] { [CallFixtures.NotingHook(name: "a", log: log)] }
            func process(_ error: any Error) { log.note("process(\(CallFixtures.word(error)))") }
            func mapError(_ error: any Error) -> ApiError {
                (error as? ServiceError)?.response?.status == .notFound ? .notFound : .other
            }
        }
        let client = ServiceClient(Mapping(log: log), transport: ScriptedTransport([.respond(404)]))
        do throws(ApiError) {
            _ = try await CallFixtures.text().schedule(with: client)
            Issue.record("it was not found")
        } catch {
            #expect(error == .notFound)
        }
        #expect(log.entries == ["a.schedule", "a.failure(unacceptable-status)", "process(unacceptable-status)"])
    }

    @Test("A synchronous hook written for the seed works unchanged")
    func seedShaped() async throws {
        final class SeedHook: RequestHook {
            private let kept = Mutex<[String]>([])
            var entries: [String] { kept.withLock { $0 } }

            func onSchedule<R>(_ request: R, _ urlRequest: URLRequest) -> R.Result? where R: Request {
                kept.withLock { $0.append("schedule \(urlRequest.url?.path ?? "")") }
                return nil
            }

            func onSuccess<R>(_ request: R, _ urlRequest: URLRequest, result: R.Result) where R: Request {
                kept.withLock { $0.append("success \(result)") }
            }

            func onFailure(_ error: any Error) {
                kept.withLock { $0.append("failure \(CallFixtures.word(error))") }
            }
        }
        let hook = SeedHook()
        let transport = ScriptedTransport([.respond(200, body: "ok"), .respond(500)])
        let client = CallFixtures.client(CallFixtures.service(hooks: [hook]), transport)
        _ = try await CallFixtures.text().schedule(with: client)
        await #expect(throws: ServiceError.self) { try await CallFixtures.text().schedule(with: client) }
        #expect(hook.entries == ["schedule /text", "success ok", "schedule /text", "failure unacceptable-status"])
    }
}
