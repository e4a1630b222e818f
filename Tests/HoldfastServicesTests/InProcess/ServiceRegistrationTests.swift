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

/// Writes down what it is told of its registration; one log for each tag.
private enum Registrations {
    private static let logs = Mutex<[String: [String]]>([:])

    static func note(_ word: String, of tag: String) {
        logs.withLock { $0[tag, default: []].append(word) }
    }

    static func log(of tag: String) -> [String] { logs.withLock { $0[tag] ?? [] } }
}

private protocol Noting: ServiceProtocol {
    static var tag: String { get }
    static var status: Http.StatusCode { get }
}

extension Noting {
    static var serviceIdentifier: String { "foo" }
    static var status: Http.StatusCode { .ok }
    static func registered() { Registrations.note("registered", of: tag) }
    static func unregistered() { Registrations.note("unregistered", of: tag) }

    static func performRequest(
        _ request: URLRequest,
        response: HTTPURLResponse,
        responseReturn: @escaping responseReturnBlock,
        dataReturn: @escaping dataReturnBlock,
        requestComplete: @escaping requestCompleteBlock
    ) {
        respondWithErrorStatus(status, response, responseReturn, requestComplete)
    }
}

private enum First: Noting { static let tag = "P-T12 first" }
private enum Second: Noting {
    static let tag = "P-T12 second"
    static let status = Http.StatusCode.conflict
}
private enum Found: Noting { static let tag = "P-T16" }
private enum Stranger: Noting { static let tag = "P-T13" }
private enum Returning: Noting { static let tag = "P-T14" }
private enum Unnamed: Noting {
    static let tag = "unnamed"
    static let serviceIdentifier = ""
}
private enum Slashed: Noting {
    static let tag = "slashed"
    static let serviceIdentifier = "a/b"
}

@Suite("Registering services", .timeLimit(.minutes(20)))
struct ServiceRegistrationTests {
    @Test("P-T12: if two have one identifier the first stays, and the second gets no registered callback")
    func taken() async throws {
        let router = ServiceRouter()
        #expect(router.registerService(First.self))
        #expect(!router.registerService(Second.self))
        #expect(!router.register(Second.self))
        #expect(!router.register(AnyInProcessService("foo") { _, _ in Response(status: .conflict) }))
        #expect(try await router.processRequest(serviceId: "foo").status == .ok)
        #expect(Registrations.log(of: First.tag) == ["registered"])
        #expect(Registrations.log(of: Second.tag).isEmpty)
        router.unregisterService(Second.self)
        #expect(try await router.processRequest(serviceId: "foo").status == .ok)
        #expect(Registrations.log(of: First.tag) == ["registered"])
    }

    @Test("P-T13: unregistering a service that is not registered has no effect")
    func stranger() {
        let router = ServiceRouter()
        router.unregisterService(Stranger.self)
        router.unregisterService(byIdentifier: "foo")
        router.unregister("foo")
        #expect(Registrations.log(of: Stranger.tag).isEmpty)
    }

    @Test("P-T14: registering, unregistering and registering again calls back in order")
    func order() async throws {
        let router = ServiceRouter(types: [Returning.self])
        router.unregisterService(Returning.self)
        #expect(try await router.processRequest(serviceId: "foo").status == .notFound)
        #expect(router.register(Returning.self))
        #expect(Registrations.log(of: Returning.tag) == ["registered", "unregistered", "registered"])
        #expect(try await router.processRequest(serviceId: "foo").status == .ok)
    }

    @Test("P-T14: instances get callbacks too, one at a time and in order, however many tasks change the registry")
    func orderUnderContention() async {
        let service = NotingInstance()
        let router = ServiceRouter()
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<200 {
                group.addTask {
                    if number.isMultiple(of: 2) { router.register(service) } else { router.unregister("noting") }
                }
            }
        }
        let notes = service.notes.withLock { $0 }
        #expect(!notes.isEmpty)
        for (index, note) in notes.enumerated() { #expect(note == index.isMultiple(of: 2)) }
    }

    @Test("P-T14: a change made during a callback does not wait, and its own callback comes after that one")
    func orderDuringCallback() async throws {
        let service = SlowInstance()
        let router = ServiceRouter()
        DispatchQueue.global().async { router.register(service) }
        try await service.begun.wait(for: 1)
        router.unregister("slow")
        #expect(service.notes.withLock { $0 } == ["registering"])
        service.gate.signal()
        try await service.ended.wait(for: 1)
        #expect(service.notes.withLock { $0 } == ["registering", "registered", "unregistered"])
    }

    @Test("A callback may change the registry itself")
    func reentrant() async throws {
        let router = ServiceRouter()
        let service = RegisteringInstance(router)
        #expect(router.register(service))
        #expect(try await router.processRequest(serviceId: "foo").status == .ok)
    }

    @Test("P-T15: a call in flight finishes after its service was unregistered, and the next one finds none")
    func inFlight() async throws {
        let foo = FooRouter()
        let entered = CountWatch()
        let gate = CountWatch()
        let request = try Foo.request { _, response, responseReturn, dataReturn, complete in
            entered.increment()
            Task {
                try await gate.wait(for: 1)
                responseReturn(response)
                dataReturn(Data("done"))
                complete()
            }
        }
        let call = Task { try await foo.call(request) }
        try await entered.wait(for: 1)
        foo.router.unregisterService(Foo.self)
        gate.increment()
        #expect(try await call.value.1 == "done")
        #expect(try await foo.router.processRequest(serviceId: "foo").status == .notFound)
    }

    @Test("An identifier that is not a path component is refused")
    func impossible() {
        let router = ServiceRouter()
        #expect(!router.register(Unnamed.self))
        #expect(!router.register(Slashed.self))
        #expect(Registrations.log(of: Unnamed.tag).isEmpty)
    }

    @Test("P-T16, P-T17, P-T18, P-T19: a service made of closures is found like any other")
    func found() async throws {
        let router = ServiceRouter(types: [Found.self], next: ScriptedTransport([.respond(299)], repeatsLastStep: true))
        let answers = [
            ("http://pmapi/foo", 200), ("http://pmapi//foo", 200), ("http://pmapi/fo%6F", 200),
            ("http://pmapi/foo/bar?x=1", 200), ("https://PMAPI:80/foo", 200), ("http://pmapi/", 404),
            ("http://pmapi", 404), ("http://pmapi/FOO", 404), ("http://pmapi/bar/foo", 404),
            ("http://api.example.com/foo", 299),
        ]
        for (text, status) in answers {
            let request = URLRequest(url: try #require(URL(string: text)))
            #expect(try await router.processRequest(request).status.rawValue == status, "\(text)")
        }
    }
}

private final class NotingInstance: InProcessService {
    let serviceIdentifier = "noting"
    let notes = Mutex<[Bool]>([])

    func registered() { notes.withLock { $0.append(true) } }
    func unregistered() { notes.withLock { $0.append(false) } }
    func respond(to request: URLRequest, body: RequestBody) async throws -> Response { Response(status: .ok) }
}

private final class SlowInstance: InProcessService {
    let serviceIdentifier = "slow"
    let notes = Mutex<[String]>([])
    let begun = CountWatch()
    let ended = CountWatch()
    let gate = DispatchSemaphore(value: 0)

    func registered() {
        notes.withLock { $0.append("registering") }
        begun.increment()
        gate.wait()
        notes.withLock { $0.append("registered") }
    }

    func unregistered() {
        notes.withLock { $0.append("unregistered") }
        ended.increment()
    }

    func respond(to request: URLRequest, body: RequestBody) async throws -> Response { Response(status: .ok) }
}

private final class RegisteringInstance: InProcessService {
    let serviceIdentifier = "registering"
    private let router: ServiceRouter

    init(_ router: ServiceRouter) { self.router = router }

    func registered() { router.register(AnyInProcessService("foo") { _, _ in Response(status: .ok) }) }
    func respond(to request: URLRequest, body: RequestBody) async throws -> Response { Response(status: .ok) }
}
