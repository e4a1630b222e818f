// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
internal import Holdfast

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

extension ServiceProtocol {
    /// A response with the URL and fields of another one, and this status.
    public static func createResponse(_ statusCode: Http.StatusCode, response: HTTPURLResponse) -> HTTPURLResponse {
        createResponse(statusCode, response: response, responseHeaders: nil)
    }

    /// A response with the URL and fields of another one, this status, and further fields.
    ///
    /// - Parameters:
    ///   - statusCode: the status.
    ///   - response: the template.
    ///   - responseHeadersOptional: replace fields of the same name, ignoring case. Invalid field names are left out.
    public static func createResponse(
        _ statusCode: Http.StatusCode,
        response: HTTPURLResponse,
        responseHeaders responseHeadersOptional: [String: String]?
    ) -> HTTPURLResponse {
        let fields = HeaderFields(of: response).merging(HeaderFields(responseHeadersOptional ?? [:]))
        return HTTPURLResponse.made(response.url, status: statusCode.statusCode, fields: fields) ?? response
    }

    // MARK: A status

    /// Answers with a status and nothing else, and ends the call: no closure may be called after it.
    ///
    /// - Parameters:
    ///   - statusCode: the status.
    ///   - response: the template; its fields stay.
    ///   - responseReturn: takes the response.
    ///   - requestComplete: ends the call.
    public static func respondWithErrorStatus(
        _ statusCode: Http.StatusCode,
        response: HTTPURLResponse,
        responseReturn: responseReturnBlock,
        requestComplete: requestCompleteBlock
    ) {
        respond(statusCode, from: response, by: responseReturn, end: requestComplete)
    }

    /// Answers with a status and nothing else, and ends the call: the same with positional parameters.
    public static func respondWithErrorStatus(
        _ statusCode: Http.StatusCode,
        _ response: HTTPURLResponse,
        _ responseReturn: responseReturnBlock,
        _ requestComplete: requestCompleteBlock
    ) {
        respond(statusCode, from: response, by: responseReturn, end: requestComplete)
    }

    // MARK: A status and header fields

    /// Answers with a status and further header fields, and ends the call: no closure may be called after it.
    ///
    /// - Parameters:
    ///   - statusCode: the status.
    ///   - response: the template; its fields stay.
    ///   - responseReturn: takes the response.
    ///   - requestComplete: ends the call.
    ///   - responseHeaders: replace the template's fields of the same name, ignoring case.
    public static func respondWithErrorStatus(
        _ statusCode: Http.StatusCode,
        response: HTTPURLResponse,
        responseReturn: responseReturnBlock,
        requestComplete: requestCompleteBlock,
        responseHeaders: [String: String]?
    ) {
        respond(statusCode, from: response, headers: responseHeaders, by: responseReturn, end: requestComplete)
    }

    /// Answers with a status and further header fields, and ends the call: the same with positional parameters.
    public static func respondWithErrorStatus(
        _ statusCode: Http.StatusCode,
        _ response: HTTPURLResponse,
        _ responseReturn: responseReturnBlock,
        _ requestComplete: requestCompleteBlock,
        _ responseHeaders: [String: String]?
    ) {
        respond(statusCode, from: response, headers: responseHeaders, by: responseReturn, end: requestComplete)
    }

    // MARK: A status and a text

    /// Answers with a status and a text in UTF-8, and ends the call: no closure may be called after it.
    ///
    /// - Parameters:
    ///   - statusCode: the status.
    ///   - description: the content; its type is `text/plain; charset=utf-8` if the template has none.
    ///   - dataReturn: takes the content.
    ///   - response: the template; its fields stay.
    ///   - responseReturn: takes the response.
    ///   - requestComplete: ends the call.
    public static func respondWithErrorStatus(
        _ statusCode: Http.StatusCode,
        description: String,
        dataReturn: dataReturnBlock,
        response: HTTPURLResponse,
        responseReturn: responseReturnBlock,
        requestComplete: requestCompleteBlock
    ) {
        respond(statusCode, text: description, to: dataReturn, from: response, by: responseReturn, end: requestComplete)
    }

    /// Answers with a status and a text in UTF-8, and ends the call: the same with positional parameters.
    public static func respondWithErrorStatus(
        _ statusCode: Http.StatusCode,
        _ description: String,
        _ dataReturn: dataReturnBlock,
        _ response: HTTPURLResponse,
        _ responseReturn: responseReturnBlock,
        _ requestComplete: requestCompleteBlock
    ) {
        respond(statusCode, text: description, to: dataReturn, from: response, by: responseReturn, end: requestComplete)
    }

    // MARK: A status, a text and header fields

    /// Answers with a status, a text in UTF-8 and further header fields, and ends the call.
    ///
    /// - Parameters:
    ///   - statusCode: the status.
    ///   - description: the content; its type is `text/plain; charset=utf-8` if neither `responseHeaders` nor the template has
    ///     one.
    ///   - dataReturn: takes the content.
    ///   - response: the template; its fields stay.
    ///   - responseReturn: takes the response.
    ///   - requestComplete: ends the call.
    ///   - responseHeaders: replace the template's fields of the same name, ignoring case.
    public static func respondWithErrorStatus(
        _ statusCode: Http.StatusCode,
        description: String,
        dataReturn: dataReturnBlock,
        response: HTTPURLResponse,
        responseReturn: responseReturnBlock,
        requestComplete: requestCompleteBlock,
        responseHeaders: [String: String]?
    ) {
        respond(
            statusCode,
            text: description,
            to: dataReturn,
            from: response,
            headers: responseHeaders,
            by: responseReturn,
            end: requestComplete
        )
    }

    /// Answers with a status, a text in UTF-8 and further header fields: the same with positional parameters.
    public static func respondWithErrorStatus(
        _ statusCode: Http.StatusCode,
        _ description: String,
        _ dataReturn: dataReturnBlock,
        _ response: HTTPURLResponse,
        _ responseReturn: responseReturnBlock,
        _ requestComplete: requestCompleteBlock,
        _ responseHeaders: [String: String]?
    ) {
        respond(
            statusCode,
            text: description,
            to: dataReturn,
            from: response,
            headers: responseHeaders,
            by: responseReturn,
            end: requestComplete
        )
    }

    private static func respond(
        _ statusCode: Http.StatusCode,
        text: String? = nil,
        to dataReturn: dataReturnBlock = { _ in },
        from template: HTTPURLResponse,
        headers: [String: String]? = nil,
        by responseReturn: responseReturnBlock,
        end requestComplete: requestCompleteBlock
    ) {
        var response = createResponse(statusCode, response: template, responseHeaders: headers)
        if text != nil, !HeaderFields(of: response).contains(.contentType) {
            let type = ["Content-Type": "text/plain; charset=utf-8"]
            response = createResponse(statusCode, response: response, responseHeaders: type)
        }
        responseReturn(response)
        if let text { dataReturn(Data(text.utf8)) }
        requestComplete()
    }
}

extension HeaderFields {
    /// The fields of a Foundation response.
    init(of response: HTTPURLResponse) {
        var texts: [String: String] = [:]
        for case (let name as String, let value as String) in response.allHeaderFields { texts[name] = value }
        self.init(texts)
    }
}

extension HTTPURLResponse {
    /// A response; nil if Foundation makes none, although it makes one for any URL, status and fields.
    static func made(_ url: URL?, status: StatusCode, fields: HeaderFields = HeaderFields()) -> HTTPURLResponse? {
        var texts: [String: String] = [:]
        for line in fields { texts[line.name.rawName] = fields[line.name] }
        guard let url = url ?? URL(string: "about:blank") else { return nil }
        return HTTPURLResponse(url: url, statusCode: status.rawValue, httpVersion: Http.version, headerFields: texts)
    }
}
