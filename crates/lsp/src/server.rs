//! Communicates with an editor: answers its messages, and publishes the problems (errors and warnings) of texts. One
//! thread answers messages in their order. Problems are published only when no message waits, so analysis does not
//! delay a user who continues to type.

use crate::analysis::Analysis;
use crate::documents::Documents;
use crate::error::ServerError;
use crate::positions::Encoding;
use crate::uri::name_of;
use crate::{completion, definition, diagnostics, format, hover, rename, symbols};
use cembra::Limits;
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, RequestId, Response};
use lsp_types::notification::{self as told, Notification as Told};
use lsp_types::request::{self as asked, Request as Asked};
use lsp_types::{
    ClientCapabilities, CompletionOptions, CompletionResponse, Diagnostic, DidChangeWatchedFilesRegistrationOptions,
    DocumentSymbolResponse, FileOperationFilter, FileOperationPattern, FileOperationRegistrationOptions,
    FileSystemWatcher, GlobPattern, GotoDefinitionResponse, HoverProviderCapability, InitializeParams,
    InitializeResult, OneOf, PrepareRenameResponse, PublishDiagnosticsParams, Registration, RegistrationParams,
    RenameOptions, ServerCapabilities, ServerInfo, SignatureHelpOptions, TextDocumentPositionParams,
    TextDocumentSyncCapability, TextDocumentSyncKind, TextDocumentSyncOptions, WorkDoneProgressOptions,
    WorkspaceFileOperationsServerCapabilities, WorkspaceServerCapabilities,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

/// The pattern of the files that the server watches: texts of models, and data files of tables.
const FILES: &str = "**/*.{cem,csv}";

/// Serves an editor until it sends `exit`. Texts, and the files that they use, are read and checked within `limits`.
///
/// # Errors
/// If the editor closes the connection, or sends `exit`, without `shutdown` before.
pub fn serve(connection: &Connection, limits: &Limits) -> Result<(), ServerError> {
    let client = initialize(connection)?;
    let encoding = encoding(&client);
    let server = Server {
        connection,
        client,
        documents: Documents::new(encoding, *limits),
        published: BTreeMap::new(),
        is_stale: false,
        is_shut_down: false,
    };
    server.run()
}

/// Waits for the `initialize` request, and answers with the server's capabilities.
fn initialize(connection: &Connection) -> Result<ClientCapabilities, ServerError> {
    loop {
        let (id, params) = connection.initialize_start().map_err(|_| ServerError::NotShutDown)?;
        match serde_json::from_value::<InitializeParams>(params) {
            Ok(InitializeParams { capabilities, .. }) => {
                let result = InitializeResult {
                    capabilities: server_capabilities(encoding(&capabilities)),
                    server_info: Some(ServerInfo {
                        name: "cembra".to_owned(),
                        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
                    }),
                };
                send(connection, Response::new_ok(id, result))?;
                return Ok(capabilities);
            }
            Err(error) => send(connection, refused(id, ErrorCode::InvalidParams, error.to_string()))?,
        }
    }
}

/// The unit of positions, from the encodings that an editor offers.
fn encoding(client: &ClientCapabilities) -> Encoding {
    let offered = client.general.as_ref().and_then(|general| general.position_encodings.as_deref());
    Encoding::of(offered.unwrap_or_default())
}

fn server_capabilities(encoding: Encoding) -> ServerCapabilities {
    let files = FileOperationRegistrationOptions {
        filters: vec![FileOperationFilter {
            scheme: Some("file".to_owned()),
            pattern: FileOperationPattern { glob: "**".to_owned(), matches: None, options: None },
        }],
    };
    ServerCapabilities {
        position_encoding: Some(encoding.kind()),
        text_document_sync: Some(TextDocumentSyncCapability::Options(TextDocumentSyncOptions {
            open_close: Some(true),
            change: Some(TextDocumentSyncKind::INCREMENTAL),
            ..TextDocumentSyncOptions::default()
        })),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        completion_provider: Some(CompletionOptions {
            trigger_characters: Some(vec![".".to_owned()]),
            resolve_provider: Some(true),
            ..CompletionOptions::default()
        }),
        signature_help_provider: Some(SignatureHelpOptions {
            trigger_characters: Some(vec!["(".to_owned(), ",".to_owned()]),
            ..SignatureHelpOptions::default()
        }),
        definition_provider: Some(OneOf::Left(true)),
        references_provider: Some(OneOf::Left(true)),
        document_highlight_provider: Some(OneOf::Left(true)),
        document_symbol_provider: Some(OneOf::Left(true)),
        document_formatting_provider: Some(OneOf::Left(true)),
        rename_provider: Some(OneOf::Right(RenameOptions {
            prepare_provider: Some(true),
            work_done_progress_options: WorkDoneProgressOptions::default(),
        })),
        workspace: Some(WorkspaceServerCapabilities {
            workspace_folders: None,
            file_operations: Some(WorkspaceFileOperationsServerCapabilities {
                did_rename: Some(files),
                ..WorkspaceFileOperationsServerCapabilities::default()
            }),
        }),
        ..ServerCapabilities::default()
    }
}

/// Sends a message.
fn send(connection: &Connection, message: impl Into<Message>) -> Result<(), ServerError> {
    connection.sender.send(message.into()).map_err(|_| ServerError::NotShutDown)
}

fn refused(id: RequestId, code: ErrorCode, message: String) -> Response {
    Response::new_err(id, code as i32, message)
}

/// The problems of a text as they were last sent to the editor.
#[derive(PartialEq)]
struct Published {
    version: Option<i32>,
    problems: Vec<Diagnostic>,
}

/// The action after a message: to wait for the next one, or to exit.
enum Next {
    Message,
    Exit,
}

/// The state of a server for one editor.
struct Server<'c> {
    connection: &'c Connection,
    client: ClientCapabilities,
    documents: Documents,
    published: BTreeMap<String, Published>,
    /// True if texts changed since problems were last published.
    is_stale: bool,
    is_shut_down: bool,
}

impl Server<'_> {
    fn run(mut self) -> Result<(), ServerError> {
        loop {
            let message = match self.connection.receiver.try_recv() {
                Ok(message) => message,
                Err(_) => {
                    self.publish()?;
                    self.connection.receiver.recv().map_err(|_| ServerError::NotShutDown)?
                }
            };
            match message {
                Message::Request(request) => {
                    let response = self.answer_safely(request);
                    send(self.connection, response)?;
                }
                Message::Notification(notification) => {
                    if let Next::Exit = self.take_note(notification)? {
                        return if self.is_shut_down { Ok(()) } else { Err(ServerError::NotShutDown) };
                    }
                }
                // The only response is to the registration of watched files; if that fails, files are read again when texts
                // change.
                Message::Response(_) => {}
            }
        }
    }

    /// Answers a request. A panic is reported as an error of this request and ends nothing else.
    fn answer_safely(&mut self, request: Request) -> Response {
        let id = request.id.clone();
        catch_unwind(AssertUnwindSafe(|| self.answer(request))).unwrap_or_else(|_| {
            refused(id, ErrorCode::InternalError, "the server has a defect: the request ended in a panic".to_owned())
        })
    }

    fn answer(&mut self, request: Request) -> Response {
        if self.is_shut_down {
            return refused(request.id, ErrorCode::InvalidRequest, "the server is shut down".to_owned());
        }
        match request.method.as_str() {
            asked::Shutdown::METHOD => {
                self.is_shut_down = true;
                Response::new_ok(request.id, Value::Null)
            }
            asked::HoverRequest::METHOD => answer::<asked::HoverRequest>(request, |params| {
                let (analysis, byte) = self.at(&params.text_document_position_params)?;
                hover::hover(&analysis, byte)
            }),
            asked::Completion::METHOD => answer::<asked::Completion>(request, |params| {
                let (analysis, byte) = self.at(&params.text_document_position)?;
                Some(CompletionResponse::List(completion::complete(&analysis, byte)))
            }),
            asked::ResolveCompletionItem::METHOD => {
                answer::<asked::ResolveCompletionItem>(request, completion::resolve)
            }
            asked::SignatureHelpRequest::METHOD => answer::<asked::SignatureHelpRequest>(request, |params| {
                let (analysis, byte) = self.at(&params.text_document_position_params)?;
                completion::signature(&analysis, byte)
            }),
            asked::GotoDefinition::METHOD => answer::<asked::GotoDefinition>(request, |params| {
                let (analysis, byte) = self.at(&params.text_document_position_params)?;
                let found = definition::definition(&analysis, byte, &|name| self.documents.uri(name))?;
                Some(GotoDefinitionResponse::Scalar(found))
            }),
            asked::References::METHOD => answer::<asked::References>(request, |params| {
                let (analysis, byte) = self.at(&params.text_document_position)?;
                let with_definition = params.context.include_declaration;
                Some(definition::references(&analysis, byte, with_definition, &|name| self.documents.uri(name)))
            }),
            asked::DocumentHighlightRequest::METHOD => answer::<asked::DocumentHighlightRequest>(request, |params| {
                let (analysis, byte) = self.at(&params.text_document_position_params)?;
                Some(definition::highlights(&analysis, byte))
            }),
            asked::DocumentSymbolRequest::METHOD => answer::<asked::DocumentSymbolRequest>(request, |params| {
                let analysis = self.documents.analysis(&name_of(&params.text_document.uri))?;
                Some(DocumentSymbolResponse::Nested(symbols::symbols(&analysis)))
            }),
            asked::Formatting::METHOD => answer::<asked::Formatting>(request, |params| {
                let analysis = self.documents.analysis(&name_of(&params.text_document.uri))?;
                format::edits(&analysis)
            }),
            asked::PrepareRenameRequest::METHOD => try_answer::<asked::PrepareRenameRequest, _>(request, |params| {
                let Some((analysis, byte)) = self.at(&params) else { return Ok(None) };
                rename::renamable(&analysis, byte).map(|range| Some(PrepareRenameResponse::Range(range)))
            }),
            asked::Rename::METHOD => try_answer::<asked::Rename, _>(request, |params| {
                let Some((analysis, byte)) = self.at(&params.text_document_position) else { return Ok(None) };
                let uri = |name: &str| self.documents.uri(name);
                rename::rename(&analysis, byte, &params.new_name, &uri).map(Some)
            }),
            method => {
                let message = format!("the server does not support the request `{method}`");
                refused(request.id, ErrorCode::MethodNotFound, message)
            }
        }
    }

    /// The analysis of the text that `place` is in, and the byte index of its position in this text; `None` if the text
    /// is not open.
    fn at(&mut self, place: &TextDocumentPositionParams) -> Option<(Rc<Analysis>, usize)> {
        let analysis = self.documents.analysis(&name_of(&place.text_document.uri))?;
        let byte = analysis.byte(place.position);
        Some((analysis, byte))
    }

    /// Handles a notification. A malformed or unknown one is ignored, because notifications have no answer.
    fn take_note(&mut self, note: Notification) -> Result<Next, ServerError> {
        match note.method.as_str() {
            told::Exit::METHOD => return Ok(Next::Exit),
            told::Initialized::METHOD => self.watch_files()?,
            told::DidOpenTextDocument::METHOD => take::<told::DidOpenTextDocument>(note, |params| {
                let opened = params.text_document;
                self.documents.open(opened.uri, opened.version, opened.text);
            }),
            told::DidChangeTextDocument::METHOD => take::<told::DidChangeTextDocument>(note, |params| {
                let changed = params.text_document;
                self.documents.change(&changed.uri, changed.version, params.content_changes);
            }),
            told::DidCloseTextDocument::METHOD => take::<told::DidCloseTextDocument>(note, |params| {
                self.documents.close(&params.text_document.uri);
            }),
            told::DidChangeWatchedFiles::METHOD => take::<told::DidChangeWatchedFiles>(note, |params| {
                params.changes.iter().for_each(|change| self.documents.changed(&name_of(&change.uri)));
            }),
            // A folder may have been renamed, with all files in it.
            told::DidRenameFiles::METHOD => self.documents.all_changed(),
            _ => return Ok(Next::Message),
        }
        self.is_stale = true;
        Ok(Next::Message)
    }

    /// Asks the editor to report changes of files on the disk.
    fn watch_files(&self) -> Result<(), ServerError> {
        let watched = self.client.workspace.as_ref().and_then(|workspace| workspace.did_change_watched_files);
        if watched.and_then(|watched| watched.dynamic_registration) != Some(true) {
            return Ok(());
        }
        let watcher = FileSystemWatcher { glob_pattern: GlobPattern::String(FILES.to_owned()), kind: None };
        let options = DidChangeWatchedFilesRegistrationOptions { watchers: vec![watcher] };
        let registration = Registration {
            id: "files".to_owned(),
            method: told::DidChangeWatchedFiles::METHOD.to_owned(),
            register_options: serde_json::to_value(options).ok(),
        };
        let params = RegistrationParams { registrations: vec![registration] };
        let method = asked::RegisterCapability::METHOD.to_owned();
        send(self.connection, Request::new("files".to_owned().into(), method, params))
    }

    /// Sends the problems of all texts whose problems or version changed since they were last sent.
    fn publish(&mut self) -> Result<(), ServerError> {
        if !std::mem::take(&mut self.is_stale) {
            return Ok(());
        }
        // After a panic the problems remain as they were last sent.
        let found = catch_unwind(AssertUnwindSafe(|| self.problems())).unwrap_or_default();
        for (name, problems) in found {
            let document = self.documents.get(&name);
            let published = Published { version: document.map(|document| document.version), problems };
            let is_open = document.is_some();
            let Some(uri) = self.documents.uri(&name) else { continue };
            if self.published.get(&name) == Some(&published) {
                continue;
            }
            let Published { version, problems } = &published;
            let params = PublishDiagnosticsParams { uri, diagnostics: problems.clone(), version: *version };
            send(self.connection, Notification::new(told::PublishDiagnostics::METHOD.to_owned(), params))?;
            if is_open || !published.problems.is_empty() {
                self.published.insert(name, published);
            } else {
                self.published.remove(&name);
            }
        }
        Ok(())
    }

    /// The problems of each text that has some or had some, collected from the analyses of all open texts.
    fn problems(&mut self) -> BTreeMap<String, Vec<Diagnostic>> {
        let mut found: BTreeMap<String, Vec<Diagnostic>> =
            self.published.keys().map(|name| (name.clone(), Vec::new())).collect();
        let names = self.documents.names();
        let all = names.into_iter().filter_map(|name| Some((self.documents.analysis(&name)?, name)));
        let all: Vec<(Rc<Analysis>, String)> = all.collect();
        for (analysis, name) in &all {
            found.entry(name.clone()).or_default();
            let is_used = || all.iter().any(|(other, _)| other.looks_for(name));
            for (file, problem) in diagnostics::diagnostics_by_file(analysis, name, &|name| self.documents.uri(name)) {
                let of_file = found.entry(file).or_default();
                let is_file_to_use = diagnostics::is_without_output(&problem) && is_used();
                // Several texts may use the same file and report the same problem of it.
                if !is_file_to_use && !of_file.contains(&problem) {
                    of_file.push(problem);
                }
            }
        }
        found
    }
}

/// Calls a function with the parameters of a notification. A malformed notification is ignored.
fn take<N: Told>(note: Notification, with: impl FnOnce(N::Params)) {
    let _malformed = serde_json::from_value(note.params).map(with);
}

/// Answers a request whose function cannot fail.
fn answer<R: Asked>(request: Request, make: impl FnOnce(R::Params) -> R::Result) -> Response {
    try_answer::<R, String>(request, |params| Ok(make(params)))
}

/// Answers a request. If its parameters are malformed, or if the function fails, the answer is an error.
fn try_answer<R: Asked, E: ToString>(
    request: Request,
    make: impl FnOnce(R::Params) -> Result<R::Result, E>,
) -> Response {
    let Request { id, params, .. } = request;
    match serde_json::from_value::<R::Params>(params) {
        Err(error) => refused(id, ErrorCode::InvalidParams, error.to_string()),
        Ok(params) => match make(params) {
            Ok(result) => Response::new_ok(id, result),
            Err(error) => refused(id, ErrorCode::RequestFailed, error.to_string()),
        },
    }
}
