// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Holdfast

/// The `ServiceError` that a call throws; nil if it throws none.
func failure(_ call: () async throws -> Void) async -> ServiceError? {
    do {
        try await call()
        return nil
    } catch {
        return error as? ServiceError
    }
}
