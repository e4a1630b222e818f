// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastStorage
import Testing

/// The code of the error that `body` throws.
func errorCode(_ body: @Sendable () async throws -> Void) async -> StoreError.Code? {
    do {
        try await body()
        return nil
    } catch {
        if !(error is StoreError) { Issue.record(error, "an error of another kind") }
        return (error as? StoreError)?.code
    }
}
