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

@Suite("Probable mistakes are reported once, in debug builds")
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

    @Test("A hook type that implements no moment is reported, one that implements a single one is not")
    func hooks() async throws {
        let transport = ScriptedTransport([.respond(), .fail(progress: .notSent)])
        let client = Pipeline(transport: transport, hooks: [NearMiss(), OnFailureOnly()])
        _ = try await client.send(.get())
        #expect(!DebugWarning.wasTold(of: NearMiss.self))
        _ = try? await client.send(.get())
        #expect(DebugWarning.wasTold(of: NearMiss.self))
        #expect(!DebugWarning.wasTold(of: OnFailureOnly.self))
    }

    @Test("A retrier that is called only once is reported, unless it says that this is intended")
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
