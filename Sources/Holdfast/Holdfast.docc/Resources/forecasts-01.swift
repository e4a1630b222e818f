// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast

struct Forecasts {
    let client = Pipeline(transport: URLSessionTransport())
}
