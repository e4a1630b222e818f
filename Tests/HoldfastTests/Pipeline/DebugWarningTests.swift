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

@Suite("What compiles and is probably a mistake is told once, in debug builds")
struct DebugWarningTests {
    /// Its methods have other parameters than those of the protocol, so nobody calls them.
    private struct NearMiss: ServiceHook {
        func onSchedule(_ request: URLRequest, _ context: CallContext) async throws -> Response? { .text("never") }
        func onSuccess(_ response: Response, _ request: URLRequest) async throws {}
    }

    private struct OnFailureOnly: ServiceHook {
        func onFailure(_ error: any Error, _ request: URLRequest, _ context: inout CallContext) async -> Response? {
            nil
        }
    }

    private struct Once: Retrier {
        func retry(_ request: URLRequest, after attempt: FailedAttempt, context: CallContext) async -> RetryDecision {
            .retryNow
        }
    }

    private struct OnceAndSaysSo: Retrier {
        let allowsMultipleRetries = false
        func retry(_ request: URLRequest, after attempt: FailedAttempt, context: CallContext) async -> RetryDecision {
            .retryNow
        }
    }

    @Test("A hook type that implements no moment is told of, one that implements a single one is not")
    func hooks() async throws {
        let transport = ScriptedTransport([.respond(), .fail(progress: .notSent)])
        let client = Pipeline(transport: transport, hooks: [NearMiss(), OnFailureOnly()])
        _ = try await client.send(.get())
        #expect(!DebugWarning.wasTold(of: NearMiss.self))
        _ = try? await client.send(.get())
        #expect(DebugWarning.wasTold(of: NearMiss.self))
        #expect(!DebugWarning.wasTold(of: OnFailureOnly.self))
    }

    @Test("A retrier that is asked once is told of, unless it says itself that this is meant")
    func retriers() async throws {
        let transport = ScriptedTransport([.respond(503)], repeatsLastStep: true)
        for factory in [AnyRetrierFactory { _ in Once() }, AnyRetrierFactory { _ in OnceAndSaysSo() }] {
            let response = try await Pipeline(transport: transport, retrierFactory: factory).send(.get())
            #expect(response.attempts.count == 2)
        }
        #expect(DebugWarning.wasTold(of: Once.self))
        #expect(!DebugWarning.wasTold(of: OnceAndSaysSo.self))
    }
}
