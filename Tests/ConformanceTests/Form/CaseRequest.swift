// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// One request of a case: what the client sends, what the origin answers, and what is expected of both.
struct CaseRequest: Sendable {
    /// Which way the answer must have come.
    enum ExpectedType: String, Sendable {
        case cached
        case notCached = "not_cached"
        case etagValidated = "etag_validated"
        case lmValidated = "lm_validated"

        var isValidated: Bool { self == .etagValidated || self == .lmValidated }
    }

    /// A status that is expected of the response.
    enum ExpectedStatus: Sendable, Equatable {
        case exactly(Int)
        /// Any status, or none at all: the call may fail.
        case any
    }

    let method: String
    let fields: [CaseField]
    let body: String?
    let query: String?
    let filename: String?
    let forcesRevalidation: Bool
    let returnsRedirects: Bool
    let countsFromServerNow: Bool
    let pausesAfter: Bool

    let responseStatus: Int?
    let responseFields: [CaseField]
    let oldDateNames: Set<String>
    let placesLocationsBelow: Bool
    let responseBody: String?
    let responsePause: Int
    let interimResponses: [InterimHead]
    let disconnects: Bool

    let expectedType: ExpectedType?
    let expectedMethod: String?
    let expectedRequestFields: [FieldExpectation]
    let missingRequestFields: [FieldExpectation]
    let expectedStatus: ExpectedStatus?
    let expectedText: String?
    let checksBody: Bool
    let expectedFields: [FieldExpectation]
    let missingFields: [FieldExpectation]
    let expectedInterim: [InterimHead]?

    private let isSetup: Bool
    private let setupMembers: Set<String>

    init(_ json: JSONValue) {
        method = json["request_method"]?.text ?? "GET"
        fields = CaseField.list(json["request_headers"])
        body = json["request_body"]?.text
        query = json["query_arg"]?.text
        filename = json["filename"]?.text
        forcesRevalidation = json["cache"]?.text == "no-cache"
        returnsRedirects = json["redirect"]?.text == "manual"
        countsFromServerNow = json["magic_ims"]?.isTrue ?? false
        pausesAfter = json["pause_after"]?.isTrue ?? false

        responseStatus = json["response_status"]?.elements?.first?.number ?? json["response_status"]?.number
        responseFields = CaseField.list(json["response_headers"])
        oldDateNames = Set((json["rfc850date"]?.texts ?? []).map { $0.lowercased() })
        placesLocationsBelow = json["magic_locations"]?.isTrue ?? false
        responseBody = json["response_body"]?.text
        responsePause = json["response_pause"]?.number ?? 0
        interimResponses = InterimHead.list(json["interim_responses"]) ?? []
        disconnects = json["disconnect"]?.isTrue ?? false

        expectedType = json["expected_type"]?.text.flatMap { ExpectedType(rawValue: $0) }
        expectedMethod = json["expected_method"]?.text
        expectedRequestFields = FieldExpectation.list(json["expected_request_headers"])
        missingRequestFields = FieldExpectation.list(json["expected_request_headers_missing"])
        expectedStatus = json["expected_status"].map { $0.number.map { .exactly($0) } ?? .any }
        expectedText = json["expected_response_text"]?.text
        checksBody = !(json["check_body"]?.isFalse ?? false)
        expectedFields = FieldExpectation.list(json["expected_response_headers"])
        missingFields = FieldExpectation.list(json["expected_response_headers_missing"])
        expectedInterim = InterimHead.list(json["expected_interim_responses"])
        isSetup = json["setup"]?.isTrue ?? false
        setupMembers = Set(json["setup_tests"]?.texts ?? [])
    }

    /// Whether a failure of this member says nothing of the cache but that the case could not be set up.
    func isSetup(_ member: String) -> Bool {
        isSetup || setupMembers.contains(member)
    }
}

/// An interim (1xx) response.
struct InterimHead: Sendable, Hashable {
    var status: Int
    /// Names in lower case.
    var fields: [[String]]

    init(status: Int, fields: [[String]]) {
        self.status = status
        self.fields = fields
    }

    static func list(_ json: JSONValue?) -> [InterimHead]? {
        json?.elements?.compactMap { element in
            guard let parts = element.elements, let status = parts.first?.number else { return nil }
            let fields = parts.dropFirst().first?.elements ?? []
            return InterimHead(
                status: status,
                fields: fields.compactMap { line in
                    guard let pair = line.elements, let name = pair.first?.text, pair.count > 1 else { return nil }
                    return [name.lowercased(), pair[1].spelled ?? ""]
                }
            )
        }
    }
}
