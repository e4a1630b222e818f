// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastServices
import HoldfastTesting

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A proxy over a script, on a clock that does not wait.
struct ScriptedProxy {
    let transport: ScriptedTransport
    let clock = ManualClock(autoAdvances: true)
    var proxy: WebServiceProxy

    init(
        _ steps: [ScriptedTransport.Step] = [.respond(200, ["Content-Type": "application/json"], body: "[]")],
        repeatsLastStep: Bool = false,
        base: String = "https://h/api/",
        cache: HTTPCache? = nil,
        retrierFactory: any RetrierFactory = .never,
        requestHooks: [any RequestHook] = [],
        configure: (inout PipelineConfiguration) -> Void = { _ in }
    ) throws {
        transport = ScriptedTransport(steps, repeatsLastStep: repeatsLastStep)
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        configure(&configuration)
        proxy = WebServiceProxy(
            transport: transport,
            baseURL: try url(base),
            cache: cache,
            retrierFactory: retrierFactory,
            requestHooks: requestHooks,
            configuration: configuration
        )
    }

    /// The URLs that were sent to, in order.
    var urls: [String] { transport.sent.map { $0.request.url?.absoluteString ?? "none" } }

    /// The content that was sent last, as text.
    var content: String? { transport.sent.last?.body.map { String(decoding: $0.array, as: UTF8.self) } }

    /// A field of the request that was sent last.
    func field(_ name: String) -> String? {
        transport.sent.last?.request.value(forHTTPHeaderField: name)
    }
}

/// A URL of a text that is one.
func url(_ text: String) throws -> URL {
    guard let url = URL(string: text) else { throw ServiceError(.badRequest, "not a URL: \(text)") }
    return url
}
