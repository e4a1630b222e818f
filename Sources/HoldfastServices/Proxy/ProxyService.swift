// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast

/// The service behind a ``WebServiceProxy``: its URL and its errors.
struct ProxyService: HttpService {
    let baseURL: URL

    var apiUrl: any UrlConvertible { baseURL }

    func mapError(_ error: any Error) -> any Error {
        guard let error = error as? ServiceError else { return error }
        switch error.code {
        case .unacceptableStatus:
            guard let response = error.response else { return error }
            return WebServiceError(response, because: error)
        case .encodingFailed, .decodingFailed:
            return error.cause ?? error
        default:
            return error.urlErrorOfSameMeaning ?? error
        }
    }
}
