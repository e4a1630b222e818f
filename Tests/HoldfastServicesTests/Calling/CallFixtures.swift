// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastServices
import HoldfastTesting
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What the tests of typed calls share.
enum CallFixtures {
    /// What happened, in order.
    final class Log: Sendable {
        private let kept = Mutex<[String]>([])

        var entries: [String] { kept.withLock { $0 } }

        func note(_ entry: String) { kept.withLock { $0.append(entry) } }

        func count(_ entry: String) -> Int { entries.count { $0 == entry } }
    }

    /// Notes each moment of a typed call; may answer it.
    struct NotingHook: RequestHook {
        let name: String
        let log: Log
        var answer: (any Sendable)?
        var meanwhile: @Sendable () async -> Void = {}

        func onSchedule<R: Request>(_ request: R, _ urlRequest: URLRequest) async -> R.Result? {
            log.note("\(name).schedule")
            await meanwhile()
            return answer as? R.Result
        }

        func onSuccess<R: Request>(
            _ request: R,
            _ urlRequest: URLRequest,
            result: R.Result,
            response: Response
        ) async {
            log.note("\(name).success(\(result), \(response.source))")
        }

        func onFailure<R: Request>(_ request: R, _ error: any Error) async {
            log.note("\(name).failure(\(CallFixtures.word(error)))")
        }

        func onCancel<R: Request>(_ request: R) { log.note("\(name).cancel") }
    }

    /// An error by its code.
    static func word(_ error: any Error) -> String {
        (error as? ServiceError)?.code.description ?? "\(error)"
    }

    /// A retrier that says what a closure says.
    struct ClosureRetrier: Retrier {
        var allowsMultipleRetries = true
        let decide: @Sendable (FailedAttempt) async -> RetryDecision

        func retry(
            _ request: URLRequest,
            after attempt: FailedAttempt,
            context: CallContext
        ) async -> RetryDecision {
            await decide(attempt)
        }
    }

    /// A service at api.example.com that notes what it is told of.
    static func service(_ log: Log = Log(), hooks: [any RequestHook] = []) -> AnyHttpService {
        AnyHttpService(at: "api.example.com", requestHooks: hooks) { log.note("process(\(word($0)))") }
    }

    /// A client whose clock goes by itself.
    static func client(
        _ service: AnyHttpService,
        _ transport: any Transport,
        clock: ManualClock = ManualClock(autoAdvances: true)
    ) -> ServiceClient<AnyHttpService> {
        var configuration = service.pipelineConfiguration
        configuration.clock = clock
        return ServiceClient(service, transport: transport, configuration: configuration)
    }

    /// A request whose result is the text of its response.
    static func text(_ method: HttpMethod = .get, _ routes: HttpRoute = ["text"]) -> AnyRequest<String> {
        AnyRequest(method, routes: routes) { data in
            guard let text = String(data: data, encoding: .utf8) else { throw NotText() }
            return text
        }
    }

    struct NotText: Error {}
}

extension ScriptedTransport.Sent {
    /// A field of what was sent.
    func field(_ name: String) -> String? { request.value(forHTTPHeaderField: name) }
}
