// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@testable import HoldfastSemantics

@Suite("RETRY §1 row 46: which bodies are resumed, and by which bytes")
struct ResumePlanTests {
    static let whole: HeaderFields = ["ETag": "\"a\"", "Content-Length": "100"]

    static func plan(
        _ fields: HeaderFields = whole,
        status: StatusCode = .ok,
        method: RequestMethod = .get,
        request: HeaderFields = HeaderFields(),
        contentDecoded: Bool = false,
        maxResumes: Int = 3
    ) -> ResumePlan? {
        ResumePlan(
            ResponseHead(status: status, fields: fields),
            method: method,
            fields: request,
            contentDecoded: contentDecoded,
            maxResumes: maxResumes
        )
    }

    @Test("RFC 9110 §8.8.1, §13.1.5, §14.2: when the body of a response can be resumed")
    func plans() {
        #expect(Self.plan() != nil)
        #expect(Self.plan(["ETag": "\"a\""]) != nil)
        #expect(Self.plan(["ETag": "\"a\"", "Content-Encoding": "gzip", "Accept-Ranges": "bytes"]) != nil)
        #expect(Self.plan(method: .head) == nil)
        #expect(Self.plan(method: .post) == nil)
        #expect(Self.plan(status: .partialContent) == nil)
        #expect(Self.plan(status: .notFound) == nil)
        #expect(Self.plan(request: ["Range": "bytes=0-9"]) == nil)
        #expect(Self.plan(contentDecoded: true) == nil)
        #expect(Self.plan(maxResumes: 0) == nil)
        #expect(Self.plan(maxResumes: .min) == nil)
        #expect(Self.plan(["ETag": "W/\"a\""]) == nil)
        #expect(Self.plan(["ETag": "a"]) == nil)
        var twoTags = Self.whole
        twoTags.append(.eTag, "\"b\"")
        #expect(Self.plan(twoTags) == nil)
        #expect(Self.plan(["Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT"]) == nil)
        #expect(Self.plan(["ETag": "\"a\"", "Content-Length": "1x"]) == nil)
        #expect(Self.plan(["ETag": "\"a\"", "Content-Length": "99999999999999999999"])?.completeLength == nil)
        #expect(Self.plan(["ETag": "\"a\"", "Accept-Ranges": "None"]) == nil)
    }

    @Test("RFC 9110 §14.2, §13.1.5: Range starts where the body broke off, and If-Range has the tag")
    func asks() {
        var plan = Self.plan()
        #expect(plan?.fields == ["Range": "bytes=0-", "If-Range": "\"a\""])
        plan?.received(30)
        plan?.received(-5)
        plan?.received(12)
        #expect(plan?.fields[.range] == "bytes=42-")
    }

    @Test("The limit counts all resumes, progress does not reset it, and nothing is requested past the end")
    func counts() {
        var generator = SeededGenerator(seed: 1)
        let backoff = Backoff(jitter: .none)
        var plan = Self.plan()
        var waits: [Duration?] = []
        for _ in 0..<5 {
            plan?.received(10)
            waits.append(plan?.nextResume(backoff, using: &generator))
        }
        #expect(waits == [.milliseconds(100), .milliseconds(200), .milliseconds(400), nil, nil])
        var complete = Self.plan()
        complete?.received(100)
        #expect(complete?.nextResume(backoff, using: &generator) == nil)
        var many = Self.plan(maxResumes: .max)
        for _ in 0..<1000 { _ = many?.nextResume(backoff, using: &generator) }
        #expect(many?.resumes == ResumePlan.mostResumes)
        var endless = Self.plan(["ETag": "\"a\""])
        for _ in 0..<3 { endless?.received(.max) }
        #expect(endless?.offset == ByteRange.limit)
        #expect(endless?.nextResume(backoff, using: &generator) == nil)
    }

    /// An answer to the request for the bytes from 42 on, and what it is good for.
    struct Answer: Sendable, CustomStringConvertible {
        let description: String
        var status: StatusCode = .partialContent
        var fields: HeaderFields = [:]
        var contentDecoded = false
        var verdict = ResumePlan.Verdict.final
    }

    static func part(_ range: String?, _ others: HeaderFields = [:]) -> HeaderFields {
        var fields: HeaderFields = ["ETag": "\"a\""]
        fields[.contentRange] = range
        return fields.merging(others)
    }

    static let exact = part("bytes 42-99/100")
    static let rest = ResumePlan.Verdict.rest(count: 58)

    static let answers: [Answer] = [
        Answer(description: "the rest", fields: exact, verdict: rest),
        Answer(
            description: "the rest with its length",
            fields: part("bytes 42-99/100", ["Content-Length": "58"]),
            verdict: rest
        ),
        Answer(description: "another length", fields: part("bytes 42-99/100", ["Content-Length": "57"])),
        Answer(description: "a length that is none", fields: part("bytes 42-99/100", ["Content-Length": "-58"])),
        Answer(description: "one byte too early", fields: part("bytes 41-99/100")),
        Answer(description: "one byte too late", fields: part("bytes 43-99/100")),
        Answer(description: "not to the end", fields: part("bytes 42-98/100")),
        Answer(description: "of a longer whole", fields: part("bytes 42-100/101")),
        Answer(description: "of a whole of unknown length", fields: part("bytes 42-99/*")),
        Answer(description: "no Content-Range", fields: part(nil)),
        Answer(description: "nonsense", fields: part("bytes 42-99")),
        Answer(description: "unsatisfied", fields: part("bytes */100")),
        Answer(description: "another unit", fields: part("lines 42-99/100")),
        Answer(description: "another tag", fields: part("bytes 42-99/100", ["ETag": "\"b\""])),
        Answer(description: "the tag, weak", fields: part("bytes 42-99/100", ["ETag": "W/\"a\""])),
        Answer(description: "no tag", fields: ["Content-Range": "bytes 42-99/100"]),
        Answer(description: "encoded", fields: part("bytes 42-99/100", ["Content-Encoding": "gzip"])),
        Answer(description: "decoded", fields: exact, contentDecoded: true),
        Answer(
            description: "several parts",
            fields: part("bytes 42-99/100", ["Content-Type": "multipart/byteranges; boundary=b"])
        ),
        Answer(description: "200: it changed", status: .ok, fields: ["ETag": "\"b\""]),
        Answer(description: "200 with the same tag", status: .ok, fields: whole),
        Answer(description: "200 with a Content-Range", status: .ok, fields: exact),
        Answer(description: "304", status: .notModified, fields: exact),
        Answer(description: "401", status: .unauthorized),
        Answer(description: "404", status: .notFound),
        Answer(description: "412", status: .preconditionFailed),
        Answer(description: "416", status: .rangeNotSatisfiable, fields: ["Content-Range": "bytes */10"]),
        Answer(description: "429", status: .tooManyRequests),
        Answer(description: "501", status: .notImplemented),
        Answer(description: "500", status: .internalServerError, verdict: .passing),
        Answer(description: "502", status: .badGateway, verdict: .passing),
        Answer(description: "503", status: .serviceUnavailable, verdict: .passing),
        Answer(description: "504", status: .gatewayTimeout, verdict: .passing),
        Answer(description: "503, later", status: .serviceUnavailable, fields: ["Retry-After": "1"]),
    ]

    @Test(
        "RFC 9110 §14.4, §15.3.7.3: only the exact rest of the same representation is appended",
        arguments: answers
    )
    func verdicts(_ answer: Answer) throws {
        var plan = try #require(Self.plan())
        plan.received(42)
        let head = ResponseHead(status: answer.status, fields: answer.fields)
        #expect(plan.verdict(on: head, contentDecoded: answer.contentDecoded) == answer.verdict)
    }

    @Test("If the first head gave no length, the first rest does, and the next one must agree")
    func learnsLength() throws {
        var plan = try #require(Self.plan(["ETag": "\"a\""]))
        plan.received(42)
        #expect(plan.verdict(on: head("bytes 42-99/100"), contentDecoded: false) == Self.rest)
        plan.received(8)
        #expect(plan.verdict(on: head("bytes 50-109/110"), contentDecoded: false) == .final)
        #expect(plan.verdict(on: head("bytes 50-99/100"), contentDecoded: false) == .rest(count: 50))
    }

    @Test(
        "RFC 9110 §15.3.7: the rest of coded content need not repeat the coding, but must not have another one",
        arguments: [(nil, true), ("gzip", true), ("br", false)] as [(String?, Bool)]
    )
    func coding(_ coding: String?, isRest: Bool) throws {
        var plan = try #require(Self.plan(Self.whole.merging(["Content-Encoding": "gzip"])))
        plan.received(42)
        var head = head("bytes 42-99/100")
        head.fields[.contentEncoding] = coding
        #expect(plan.verdict(on: head, contentDecoded: false) == (isRest ? Self.rest : .final))
    }

    private func head(_ range: String) -> ResponseHead {
        ResponseHead(status: .partialContent, fields: Self.part(range))
    }

    @Test("Only a broken connection is cured; a local limit, a protocol error and a cancellation are not")
    func cures() {
        let cured: [AttemptFailure.Kind] = [
            .connectionLost, .timeout, .tls, .offline, .connect, .resolve, .refused,
        ]
        let others: [AttemptFailure.Kind] = [
            .certificate, .protocolError, .badRequest, .tooLarge, .throttled, .heldBack, .cancelled, .other,
        ]
        for kind in cured { #expect(ResumePlan.cures(AttemptFailure(kind: kind, progress: .bytesReceived))) }
        for kind in others { #expect(!ResumePlan.cures(AttemptFailure(kind: kind, progress: .bytesReceived))) }
    }
}
