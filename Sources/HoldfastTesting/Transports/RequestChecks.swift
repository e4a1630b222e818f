// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
internal import HoldfastSemantics
internal import HoldfastStorage

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

extension TransportConformance {
    /// Fields that clients add to frame and describe any request; they do not tell whose it is.
    private static let unremarkableFields: Set<String> = [
        "accept", "accept-charset", "accept-encoding", "accept-language", "connection", "content-length", "host",
        "http2-settings", "keep-alive", "priority", "te", "transfer-encoding", "upgrade", "user-agent",
    ]

    static let requestChecks: [Check] = [
        Check("the method arrives as given") { run in
            let origin = try await run.origin { _ in LoopbackReply() }
            let transport = try await run.transport()
            let methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PURGE"]
            for method in methods { _ = try await transport.send(origin.url("/"), method: method).body.collect() }
            run.equal(origin.requests.map(\.method), to: methods, for: "the methods that arrived")
        },
        Check("the target arrives as given") { run in
            let origin = try await run.origin { _ in LoopbackReply() }
            let transport = try await run.transport()
            let targets = [
                "/", "/a/b?x=1&y=2", "/caf%C3%A9?q=%E2%82%AC", "/a%2Fb", "/p;v=1", "/~a", "/a?empty=", "/a?", "/%7E%41",
                "/a?b=c+d%20e&f=%26%3D", "/a//b",
            ]
            for target in targets { _ = try await transport.send(origin.url(target)).body.collect() }
            run.equal(origin.requests.map(\.target), to: targets, for: "the targets that arrived")
        },
        Check("request fields arrive") { run in
            let origin = try await run.origin { _ in LoopbackReply() }
            let fields = [
                "X-Plain": "value", "X-List": "a, b,c", "X-Quoted": "\"a, \\\"b\"", "X-Spaces": "two  blanks",
                "Accept": "application/json", "If-None-Match": "\"a\", W/\"b\"", "Range": "bytes=1-",
            ]
            _ = try await run.transport().send(origin.url("/"), fields: fields).body.collect()
            for (name, value) in fields {
                run.equal(origin.requests.first?.values(of: name), to: [value], for: "the field \(name)")
            }
        },
        Check("a request field with an empty value arrives") { run in
            let origin = try await run.origin { _ in LoopbackReply() }
            _ = try await run.transport().send(origin.url("/"), fields: ["X-Empty": ""]).body.collect()
            let expected = run.capabilities.sendsEmptyFields ? [""] : []
            run.equal(origin.requests.first?.values(of: "X-Empty"), to: expected, for: "the values of the empty field")
        },
        Check("the declared implicit fields are those that the transport adds") { run in
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
                    or:
                        "the implicit field \(name) is \(implicit[line.name] ?? ""), but \(arrived.values(of: name)) arrived"
                )
            }
            let known = unremarkableFields.union(["x-own"]).union(implicit.map { $0.name.rawName.lowercased() })
            let names = Set(arrived.fields.map { $0.name.lowercased() }.filter { !$0.hasPrefix(":") })
            for name in names.subtracting(known).sorted() {
                run.report("the field \(name) arrived, but was neither given nor declared as implicit")
            }
        },
    ]
}

extension TransportConformance {
    static let requestBodyChecks: [Check] =
        forms.map { form in
            Check("a request body arrives byte for byte, with its framing: \(form.name)") { run in
                try await check(form, run: run)
            }
        } + [contentInGET, failingSource(declared: false), failingSource(declared: true)]
        + [(5, "longer than"), (50_000, "shorter than")].map { declared, word in
            Check("a request body \(word) its declared length is never taken for complete") { run in
                let body = RequestBody.factory(length: declared) { PatternSource(20_000) }
                try await refused(body, run: run)
            }
        }

    /// A request body, and what should arrive.
    private struct BodyForm: Sendable {
        let name: String
        let length: Int
        let make: @Sendable (_ file: URL) -> RequestBody
    }

    private static func pattern(_ count: Int) -> Data {
        var data = Data()
        while data.count < count {
            TransferPattern.bytes(count - data.count, at: data.count).withUnsafeBytes { data.append(contentsOf: $0) }
        }
        return data
    }

    private static let forms: [BodyForm] = [
        BodyForm(name: "none", length: 0) { _ in .none },
        BodyForm(name: "no bytes", length: 0) { _ in .data(Data()) },
        BodyForm(name: "bytes", length: 100_000) { _ in .data(pattern(100_000)) },
        BodyForm(name: "a file", length: 3_000_000) { .file($0) },
        BodyForm(name: "a factory of known length", length: 200_000) { _ in
            .factory(length: 200_000) { PatternSource(200_000) }
        },
        BodyForm(name: "a factory", length: 3_000_000) { _ in .factory { PatternSource(3_000_000) } },
        BodyForm(name: "an empty factory", length: 0) { _ in .factory { PatternSource(0) } },
        BodyForm(name: "one shot", length: 200_000) { _ in .oneShot(PatternSource(200_000)) },
        BodyForm(name: "one shot of known length", length: 3_000_000) { _ in
            .oneShot(length: 3_000_000, PatternSource(3_000_000))
        },
    ]

    private static func check(_ form: BodyForm, run: TransportRun) async throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("holdfast-\(UUID().uuidString)")
        try pattern(form.length).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let origin = try await run.origin(intake: { _ in .measure }) { LoopbackReply(body: "\($0.bodyLength)") }
        let body = form.make(file)
        let transport = try await run.transport()
        let response = try await transport.send(
            origin.url("/"),
            method: "PUT",
            fields: ["Content-Type": "application/x-pattern"],
            body: body
        )
        run.equal(try await response.text(), to: "\(form.length)", for: "the answer")
        guard let arrived = origin.requests.first else { return run.report("no request arrived") }
        run.equal(origin.requests.count, to: 1, for: "requests")
        run.equal(arrived.bodyLength, to: form.length, for: "the bytes that arrived")
        run.check(arrived.isPattern, or: "the bytes that arrived are not those sent")
        run.equal(arrived.values(of: "Content-Type"), to: ["application/x-pattern"], for: "the content type")
        let lengths = arrived.values(of: "Content-Length")
        let codings = arrived.values(of: "Transfer-Encoding")
        // RFC 9112 §6.2: never both, or the two sides may disagree where the content ends.
        run.check(
            lengths.isEmpty || codings.isEmpty,
            or: "Content-Length \(lengths) together with Transfer-Encoding \(codings)"
        )
        run.check(lengths.allSatisfy { $0 == "\(form.length)" }, or: "a Content-Length of \(lengths)")
        if form.length > 0 && run.version == .http1 {
            run.equal(lengths.count + codings.count, to: 1, for: "framing fields")
        }
    }

    private static let contentInGET = Check("content in a GET arrives, or is rejected and nothing is sent") { run in
        let origin = try await run.origin { _ in LoopbackReply() }
        let transport = try await run.transport()
        let body = RequestBody.data(Data("content".utf8))
        if run.capabilities.sendsContentInGET {
            _ = try await transport.send(origin.url("/"), body: body).body.collect()
            run.equal(origin.requests.map(\.text), to: ["content"], for: "the content that arrived")
        } else {
            let error = await run.failure("content in a GET") {
                "\(try await transport.send(origin.url("/"), body: body).status)"
            }
            run.equal(error?.code, to: .unsupported, for: "the code")
            run.equal(error?.progress, to: .notSent, for: "the progress")
            run.equal(origin.requests.count, to: 0, for: "requests that arrived")
        }
    }

    private static func failingSource(declared: Bool) -> Check {
        Check("a request body that fails ends the exchange, \(declared ? "its length declared" : "its length unknown")")
        { run in
            let body = RequestBody.factory(length: declared ? 300_000 : nil) { PatternSource(200_000, fails: true) }
            try await refused(body, run: run)
        }
    }

    /// Sends a body that cannot be sent completely.
    private static func refused(_ body: RequestBody, run: TransportRun) async throws {
        let origin = try await run.origin(intake: { _ in .measure }) { LoopbackReply(body: $0.path) }
        let transport = try await run.transport()
        _ = try await transport.send(origin.url("/before")).body.collect()
        let error = await run.failure("a body that cannot be sent") {
            "\(try await transport.send(origin.url("/refused"), method: "POST", body: body).status)"
        }
        let after = try await transport.send(origin.url("/after"))
        run.equal(try await after.text(), to: "/after", for: "the response to the next request")
        let arrived = origin.requests.map(\.path)
        run.equal(arrived, to: ["/before", "/after"], for: "the requests that arrived completely")
        let heads = try await origin.heads(atLeast: 2)
        if heads.contains(where: { $0.path == "/refused" }) {
            run.check(error?.progress != .notSent, or: "the head arrived, but the progress is notSent")
        }
    }
}
