// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics

/// What came of a case.
enum Verdict: Sendable, Equatable {
    case passed
    /// The cache did otherwise than the case asks.
    case failed(String)
    /// The case could not be set up, so it says nothing; it does not count as passed.
    case setupFailed(String)
    /// A case it builds upon has not passed.
    case dependencyFailed(String)

    var isPass: Bool { self == .passed }

    var text: String {
        switch self {
        case .passed: "passed"
        case .failed(let reason): "failed: \(reason)"
        case .setupFailed(let reason): "set-up failed: \(reason)"
        case .dependencyFailed(let id): "depends on \(id), which has not passed"
        }
    }
}

/// A response as the client received it; a call that failed has only a failure.
struct ReceivedResponse: Sendable {
    var status: Int?
    var fields = HeaderFields()
    var body = ""
    var interim: [InterimHead] = []
    var failure: String?

    /// The combined value of a field.
    func value(of name: String) -> String? {
        FieldName(name).flatMap { fields[$0] }
    }

    /// An integer that the origin put into a field.
    func number(_ name: String) -> Int? {
        value(of: name).flatMap { Int($0) }
    }
}

/// Judges what a client received and what the origin saw: a function of both.
struct CaseCheck {
    let requests: [CaseRequest]
    /// The string unique to the case.
    let marker: String

    /// Why a request's response is not what the case asks for; nil where it is.
    func response(_ response: ReceivedResponse, to index: Int) -> Verdict? {
        let config = requests[index]
        var finding = Finding(config, number: index + 1)
        if let failure = response.failure, config.expectedStatus != .any {
            finding.fail("expected_status", "no response came: \(failure)")
            return finding.verdict
        }
        checkType(response, config, index + 1, &finding)
        checkStatus(response, config, &finding)
        checkFields(response, config, &finding)
        if let expected = config.expectedInterim, expected != response.interim {
            finding.fail("expected_interim_responses", "interim responses were \(response.interim)")
        }
        checkBody(response, config, &finding)
        return finding.verdict
    }

    private func checkType(
        _ response: ReceivedResponse,
        _ config: CaseRequest,
        _ number: Int,
        _ finding: inout Finding
    ) {
        let count = response.number("Server-Request-Count")
        switch config.expectedType {
        case .cached:
            // A 304 that the cache makes need not bear the origin's fields.
            if response.status == 304, count == nil { return }
            if count.map({ $0 < number }) != true {
                finding.fail("expected_type", "does not come from the cache")
            }
        case .notCached:
            if count != number { finding.fail("expected_type", "comes from the cache") }
        case .etagValidated, .lmValidated, nil:
            break
        }
    }

    private func checkStatus(_ response: ReceivedResponse, _ config: CaseRequest, _ finding: inout Finding) {
        let received = response.status.map(String.init) ?? "none"
        switch config.expectedStatus {
        case .any: return
        case .exactly(let status):
            if response.status != status {
                finding.fail("expected_status", "status is \(received) instead of \(status)")
            }
        case nil:
            if response.status == 999 {
                finding.fail("expected_type", "should have been conditional, with the validator of the response before")
            } else if response.status != config.responseStatus ?? 200 {
                finding.fail("response_status", "status is \(received) instead of \(config.responseStatus ?? 200)")
            }
        }
    }

    private func checkFields(_ response: ReceivedResponse, _ config: CaseRequest, _ finding: inout Finding) {
        let serverNow = Timestamp(millisecondsSinceEpoch: Int64(response.number("Server-Now") ?? 0))
        for expectation in config.expectedFields {
            let isMet =
                switch expectation {
                case .named(let name): response.value(of: name) != nil
                case .value(let name, let value):
                    response.value(of: name) == value.spelled(for: name, now: serverNow)
                case .sameAs(let name, let other): response.value(of: name) == response.value(of: other)
                case .greater(let name, let number): response.number(name).map { $0 > number } ?? false
                }
            if !isMet {
                finding.fail(
                    "expected_response_headers",
                    "the response should have \(expectation), and has \(response.value(of: expectation.name) ?? "none")"
                )
            }
        }
        for expectation in config.missingFields where expectation.isContained(in: response.fields) {
            finding.fail("expected_response_headers_missing", "the response should not have \(expectation)")
        }
    }

    private func checkBody(_ response: ReceivedResponse, _ config: CaseRequest, _ finding: inout Finding) {
        guard config.checksBody else { return }
        let expected: String
        if let text = config.expectedText {
            expected = text
        } else if response.status == 204 || response.status == 304 || config.method == "HEAD" {
            return
        } else if let body = config.responseBody, !body.isEmpty {
            expected = body
        } else {
            expected = marker
        }
        if response.body != expected {
            finding.fail("expected_response_text", "the body is '\(response.body)' instead of '\(expected)'")
        }
    }

    /// Why what the origin saw of a request is not what the case asks for; nil where it is.
    func exchange(_ exchange: CaseOrigin.Exchange?, _ response: ReceivedResponse, of index: Int) -> Verdict? {
        let config = requests[index]
        if config.expectedType == .cached { return nil }
        var finding = Finding(config, number: index + 1)
        guard let exchange else {
            let wantsExchange =
                config.expectedType != nil || config.expectedMethod != nil || !config.expectedRequestFields.isEmpty
            if wantsExchange { finding.fail("expected_type", "never reached the origin") }
            return finding.verdict
        }
        let validator: FieldName? =
            switch config.expectedType {
            case .etagValidated: .ifNoneMatch
            case .lmValidated: .ifModifiedSince
            default: nil
            }
        if let validator, !exchange.requestFields.contains(validator) {
            finding.fail("expected_type", "bore no \(validator.rawName)")
        }
        if let method = config.expectedMethod, method != exchange.method {
            finding.fail("expected_method", "had the method \(exchange.method)")
        }
        for expectation in config.expectedRequestFields where !expectation.isEqual(in: exchange.requestFields) {
            finding.fail("expected_request_headers", "should have borne \(expectation)")
        }
        for expectation in config.missingRequestFields where expectation.isContained(in: exchange.requestFields) {
            finding.fail("expected_request_headers_missing", "should not have borne \(expectation)")
        }
        for name in exchange.mustArrive where exchange.responseFields[name] != response.fields[name] {
            finding.fail(
                "response_headers",
                "the client got \(name.rawName): \(response.fields[name] ?? "none") "
                    + "instead of \(exchange.responseFields[name] ?? "none")"
            )
        }
        return finding.verdict
    }
}

/// The first thing found amiss in a request.
private struct Finding {
    private let config: CaseRequest
    private let number: Int
    private(set) var verdict: Verdict?

    init(_ config: CaseRequest, number: Int) {
        self.config = config
        self.number = number
    }

    mutating func fail(_ member: String, _ text: String) {
        guard verdict == nil else { return }
        let reason = "request \(number): \(text)"
        verdict = config.isSetup(member) ? .setupFailed(reason) : .failed(reason)
    }
}

extension FieldExpectation: CustomStringConvertible {
    var name: String {
        switch self {
        case .named(let name), .value(let name, _), .sameAs(let name, _), .greater(let name, _): name
        }
    }

    var description: String {
        switch self {
        case .named(let name): name
        case .value(let name, .text(let text)): "\(name): \(text)"
        case .value(let name, .number(let number)): "\(name): now + \(number)"
        case .sameAs(let name, let other): "\(name) equal to \(other)"
        case .greater(let name, let number): "\(name) > \(number)"
        }
    }

    /// Whether a message has the field, with this text in its value where one is named.
    func isContained(in fields: HeaderFields) -> Bool {
        guard let value = FieldName(name).flatMap({ fields[$0] }) else { return false }
        guard case .value(_, .text(let text)) = self else { return true }
        return value.contains(text)
    }

    /// Whether a message has the field, with this value where one is named.
    func isEqual(in fields: HeaderFields) -> Bool {
        guard let value = FieldName(name).flatMap({ fields[$0] }) else { return false }
        guard case .value(_, let expected) = self else { return true }
        return value == expected.spelled(for: name, now: Timestamp(millisecondsSinceEpoch: 0))
    }
}
