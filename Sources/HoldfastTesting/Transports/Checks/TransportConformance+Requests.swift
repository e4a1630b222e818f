// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

extension TransportConformance {
    static let requestChecks: [Check] = [
        Check("the method arrives as given") { run in
            let origin = try await run.origin { _ in LoopbackReply() }
            let transport = try await run.transport()
            let methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PURGE"]
            for method in methods { _ = try await transport.send(origin.url("/"), method).body.collect() }
            run.equal(origin.requests.map(\.method), methods, "the methods that arrived")
        },
        Check("the target arrives as given") { run in
            let origin = try await run.origin { _ in LoopbackReply() }
            let transport = try await run.transport()
            let targets = [
                "/", "/a/b?x=1&y=2", "/caf%C3%A9?q=%E2%82%AC", "/a%2Fb", "/p;v=1", "/~a", "/a?empty=", "/a?", "/%7E%41",
                "/a?b=c+d%20e&f=%26%3D", "/a//b",
            ]
            for target in targets { _ = try await transport.send(origin.url(target)).body.collect() }
            run.equal(origin.requests.map(\.target), targets, "the targets that arrived")
        },
        Check("request fields arrive") { run in
            let origin = try await run.origin { _ in LoopbackReply() }
            let fields = [
                "X-Plain": "value", "X-List": "a, b,c", "X-Quoted": "\"a, \\\"b\"", "X-Spaces": "two  blanks",
                "Accept": "application/json", "If-None-Match": "\"a\", W/\"b\"", "Range": "bytes=1-",
            ]
            _ = try await run.transport().send(origin.url("/"), fields: fields).body.collect()
            for (name, value) in fields {
                run.equal(origin.requests.first?.values(of: name), [value], "the field \(name)")
            }
        },
        Check("a request field with an empty value arrives") { run in
            let origin = try await run.origin { _ in LoopbackReply() }
            _ = try await run.transport().send(origin.url("/"), fields: ["X-Empty": ""]).body.collect()
            let expected = run.capabilities.sendsEmptyFields ? [""] : []
            run.equal(origin.requests.first?.values(of: "X-Empty"), expected, "the values of the empty field")
        },
        Check("the implicit fields are what is added") { run in
            let origin = try await run.origin { _ in LoopbackReply() }
            let transport = try await run.transport()
            var request = URLRequest(url: origin.url("/"))
            request.setValue("own", forHTTPHeaderField: "X-Own")
            let implicit = transport.implicitFields(for: request)
            _ = try await transport.send(request, body: .none, context: CallContext()).body.collect()
            guard let arrived = origin.requests.first else { return run.report("no request arrived") }
            for line in implicit {
                let name = line.name.rawName
                run.check(
                    arrived.values(of: name).joined(separator: ", ") == implicit[line.name],
                    "the implicit field \(name) is \(implicit[line.name] ?? ""), but \(arrived.values(of: name)) arrived"
                )
            }
            for name in ["Cookie", "Authorization", "Proxy-Authorization"] where !arrived.values(of: name).isEmpty {
                run.check(
                    implicit.contains { $0.name.rawName.lowercased() == name.lowercased() },
                    "the field \(name) arrived and was not told as implicit"
                )
            }
        },
    ]
}
