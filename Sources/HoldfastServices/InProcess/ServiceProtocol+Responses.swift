// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
internal import Holdfast

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

extension ServiceProtocol {
    /// A response with the URL and fields of another one, and this status.
    ///
    /// - Parameters:
    ///   - statusCode: the status.
    ///   - response: the template.
    ///   - responseHeadersOptional: replace fields of the same name, ignoring case. Invalid field names are left out.
    public static func createResponse(
        _ statusCode: Http.StatusCode,
        response: HTTPURLResponse,
        responseHeaders responseHeadersOptional: [String: String]? = nil
    ) -> HTTPURLResponse {
        let fields = response.head.fields.merging(HeaderFields(responseHeadersOptional ?? [:]))
        return HTTPURLResponse.made(response.url, status: statusCode.statusCode, fields: fields) ?? response
    }

    /// Answers with a status without content, and ends the call: no closure may be called after it.
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
        responseHeaders: [String: String]? = nil
    ) {
        responseReturn(createResponse(statusCode, response: response, responseHeaders: responseHeaders))
        requestComplete()
    }

    /// Answers with a status without content, and ends the call: the same with positional parameters.
    public static func respondWithErrorStatus(
        _ statusCode: Http.StatusCode,
        _ response: HTTPURLResponse,
        _ responseReturn: responseReturnBlock,
        _ requestComplete: requestCompleteBlock,
        _ responseHeaders: [String: String]? = nil
    ) {
        respondWithErrorStatus(
            statusCode,
            response: response,
            responseReturn: responseReturn,
            requestComplete: requestComplete,
            responseHeaders: responseHeaders
        )
    }

    /// Answers with a status and a text in UTF-8, and ends the call: no closure may be called after it.
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
        responseHeaders: [String: String]? = nil
    ) {
        var made = createResponse(statusCode, response: response, responseHeaders: responseHeaders)
        if !made.head.fields.contains(.contentType) {
            let type = ["Content-Type": "text/plain; charset=utf-8"]
            made = createResponse(statusCode, response: made, responseHeaders: type)
        }
        responseReturn(made)
        dataReturn(Data(description.utf8))
        requestComplete()
    }

    /// Answers with a status and a text in UTF-8, and ends the call: the same with positional parameters.
    public static func respondWithErrorStatus(
        _ statusCode: Http.StatusCode,
        _ description: String,
        _ dataReturn: dataReturnBlock,
        _ response: HTTPURLResponse,
        _ responseReturn: responseReturnBlock,
        _ requestComplete: requestCompleteBlock,
        _ responseHeaders: [String: String]? = nil
    ) {
        respondWithErrorStatus(
            statusCode,
            description: description,
            dataReturn: dataReturn,
            response: response,
            responseReturn: responseReturn,
            requestComplete: requestComplete,
            responseHeaders: responseHeaders
        )
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
