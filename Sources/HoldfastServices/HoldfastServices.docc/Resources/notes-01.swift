// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastServices

struct NotesAPI: HttpService {
    var apiUrl: any UrlConvertible { "notes.example/v1" }
}
