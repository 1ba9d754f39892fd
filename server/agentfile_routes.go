package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/spool"
	"github.com/loci-memory/loci/server/agentfile"
	"github.com/loci-memory/loci/server/rest"
)

// agentFileTimeout bounds the export or import of an agent file. An agent with a long history takes minutes.
const agentFileTimeout = 30 * time.Minute

// DefaultMaxImportBytes is the largest agent file that is imported: 1 GiB, including the originals of the agents'
// files.
const DefaultMaxImportBytes = 1 << 30

// agentFileRoutes registers the routes that export and import agents.
func (s *Server) agentFileRoutes(a *rest.API) {
	store := agentfile.New(a, s.Agents, s.Tools, s.Version)
	flag := func(name, doc string) *huma.Param {
		return &huma.Param{Name: name, In: "query", Description: doc, Schema: &huma.Schema{Type: huma.TypeBoolean}}
	}
	a.For(rest.Read).Stream(huma.Operation{
		Method: http.MethodGet, Path: "/v1/agents/{agent_id}/export",
		Summary: "export_agent: Export an agent to a file. In Letta's format (.af); no secret is in it.",
		Parameters: []*huma.Param{rest.IDParam("agent_id", "agent"),
			{Name: "conversation_id", In: "query", Description: "Whose messages to export; the default one's if absent.",
				Schema: &huma.Schema{Type: huma.TypeString}},
			flag("scrub_messages", "Leave out the messages."),
			flag("full", "Add all that the agent remembers, in lists that only Loci reads."),
			{Name: "max_steps", In: "query", Deprecated: true, Description: "100, which changes nothing.",
				Schema: rest.Enum("100")},
			flag("use_legacy_format", "True is refused: it is no longer written.")},
		Responses: map[string]*huma.Response{"200": {Description: "The file.",
			Content: map[string]*huma.MediaType{rest.JSON: {Schema: &huma.Schema{Type: huma.TypeObject}}}}},
	}, func(c echo.Context) error { return s.exportAgent(c, store) }, rest.Own)
	a.For(rest.Write).Stream(huma.Operation{
		Method: http.MethodPost, Path: "/v1/agents/import",
		Summary: "import_agents: Import agents from a file. All or nothing; left_out says what Loci does not have.",
		RequestBody: &huma.RequestBody{Required: true,
			Content: map[string]*huma.MediaType{"multipart/form-data": {Schema: importForm()}}},
		Responses: map[string]*huma.Response{"200": {Description: "The ids of the agents.",
			Content: rest.Content[agentfile.Imported](a, rest.JSON)}},
	}, func(c echo.Context) error { return s.importAgents(c, a, store) })
}

func (s *Server) exportAgent(c echo.Context, store *agentfile.Store) error {
	id, err := rest.PathID(c, "agent_id", "agent")
	if err != nil {
		return err
	}
	o := agentfile.ExportOptions{AgentID: id, Conversation: c.QueryParam("conversation_id")}
	for name, flag := range map[string]*bool{"scrub_messages": &o.NoMessages, "full": &o.Full} {
		if *flag, err = formFlag("query."+name, c.QueryParam(name)); err != nil {
			return err
		}
	}
	if err := checkExport(c, o); err != nil {
		return err
	}
	var file spool.Spool
	defer file.Close()
	ctx, cancel := context.WithTimeout(c.Request().Context(), agentFileTimeout)
	defer cancel()
	if err := store.Export(ctx, rest.Org(ctx), o, &file); err != nil {
		return err
	}
	h := c.Response().Header()
	h.Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	h.Set(echo.HeaderContentDisposition, disposition(id+".af"))
	h.Set(echo.HeaderXContentTypeOptions, "nosniff")
	return rest.ServeContent(c, time.Time{}, file.Reader())
}

// checkExport refuses query parameters that an export cannot honour.
func checkExport(c echo.Context, o agentfile.ExportOptions) error {
	legacy, err := formFlag("query.use_legacy_format", c.QueryParam("use_legacy_format"))
	if err != nil {
		return err
	}
	switch steps := c.QueryParam("max_steps"); {
	case legacy:
		return rest.Malformed("use_legacy_format: the older format of a single agent is not written; leave it out")
	case steps != "" && steps != "100":
		return rest.Unprocessable("query.max_steps", "the messages of an export are those that the model sees; leave it out")
	case o.Full && (o.NoMessages || o.Conversation != ""):
		return rest.Unprocessable("query.full", "a full export has all messages of all conversations; leave out "+
			"scrub_messages and conversation_id")
	}
	return nil
}

func formFlag(place, value string) (bool, error) {
	if value == "" {
		return false, nil
	}
	set, err := strconv.ParseBool(strings.ToLower(value))
	if err != nil {
		return false, rest.Unprocessable(place, fmt.Sprintf("expected true or false. Got: %.50q", value))
	}
	return set, nil
}

// The text parts of a request to import agents. The second name of each is the one that older clients use.
var (
	nameParts      = []string{"name", "override_name"}
	embeddingParts = []string{"embedding", "override_embedding_handle"}
	modelParts     = []string{"model", "override_model_handle"}
	secretParts    = []string{"secrets", "env_vars_json"}
	flagParts      = []string{"append_copy_suffix", "strip_messages", "override_existing_tools"}
	refusedParts   = []string{"project_id"}
	textParts      = slices.Concat(nameParts, embeddingParts, modelParts, secretParts, flagParts, refusedParts)
)

// partDocs describes the text parts for the OpenAPI document.
//
//nolint:gosec // no credentials
var partDocs = map[string]string{
	"name": "Of the agent, if the file has one.", "override_name": "The older name of name.",
	"embedding": "Of the agents: provider/model.", "override_embedding_handle": "The older name of embedding.",
	"model": "Of the agents: provider/model.", "override_model_handle": "The older name of model.",
	"secrets": "Empty: Loci stores no secrets.", "env_vars_json": "The older name of secrets.",
	"append_copy_suffix": "Adds _copy to the names.", "strip_messages": "Leaves out the messages.",
	"override_existing_tools": "Whether tools of the names of the file's are changed; else true.",
	"project_id":              "Empty: Loci has no projects.",
}

func importForm() *huma.Schema {
	form := &huma.Schema{Type: huma.TypeObject, Required: []string{partFile}, Properties: map[string]*huma.Schema{
		partFile: {Type: huma.TypeString, Format: "binary", Description: "The file of the agents."}}}
	for _, name := range flagParts {
		form.Properties[name] = &huma.Schema{Type: huma.TypeBoolean, Description: partDocs[name]}
	}
	for _, name := range slices.Concat(nameParts, embeddingParts, modelParts, secretParts, refusedParts) {
		form.Properties[name] = &huma.Schema{Type: huma.TypeString, Description: partDocs[name]}
	}
	return form
}

// maxTextBytes bounds all text parts of an import request together.
const maxTextBytes = 1 << 20

// importAgents spools the part "file" of a multipart body, reads the other parts, and imports the file's agents.
func (s *Server) importAgents(c echo.Context, a *rest.API, store *agentfile.Store) error {
	ctx, cancel := context.WithTimeout(c.Request().Context(), agentFileTimeout)
	defer cancel()
	maxBytes := cmp.Or(s.MaxImportBytes, DefaultMaxImportBytes)
	limit := maxBytes + uploadOverhead
	if c.Request().ContentLength > limit {
		return agentFileTooLarge(maxBytes)
	}
	defer a.CountSpooled(c)()
	c.Request().Body = rest.Body(c, limit)
	parts, err := c.Request().MultipartReader()
	if err != nil {
		return rest.Unprocessable("body", "expected multipart/form-data with a part named 'file': "+err.Error())
	}
	file, texts, err := readForm(parts, func(part io.ReadCloser) (*rest.Spool, error) {
		return a.SpoolFrom(c, http.MaxBytesReader(nil, part, maxBytes))
	})
	if file != nil {
		defer file.Close()
	}
	if err == nil {
		err = readRest(c.Request().Body)
	}
	if _, limited := errors.AsType[*http.MaxBytesError](err); limited {
		return agentFileTooLarge(maxBytes)
	}
	if err != nil {
		return err
	}
	o, err := importOptions(texts)
	if err != nil {
		return err
	}
	if embedding := c.Request().Header.Get("X-Override-Embedding-Model"); o.Embedding == nil && embedding != "" {
		o.Embedding = &embedding
	}
	ids, err := store.Import(ctx, rest.Org(ctx), file, o)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, ids)
}

// agentFileTooLarge is the problem of an agent file, or of the body around one, that is larger than mostBytes.
func agentFileTooLarge(mostBytes int64) error {
	return rest.PartTooLarge("The agent file, which LOCI_MAX_IMPORT_BYTES bounds,", mostBytes)
}

// readForm reads the parts of a form: the file, which it spools, and the texts. The caller closes the file, also after
// an error. readForm refuses a part before reading it if an import has no such part, or if the part is there twice.
func readForm(parts *multipart.Reader, spool func(part io.ReadCloser) (*rest.Spool, error)) (file *rest.Spool,
	texts map[string]string, err error) {
	texts = map[string]string{}
	budget := int64(maxTextBytes)
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return file, nil, brokenBody(err)
		}
		name := part.FormName()
		_, repeated := texts[name]
		switch {
		case name == partFile && file != nil:
			return file, nil, rest.Unprocessable("body.file", "expected one part named 'file'")
		case name == partFile:
			if file, err = spool(part); err != nil {
				return nil, nil, brokenBody(err)
			}
			continue
		case !slices.Contains(textParts, name):
			return file, nil, rest.Unprocessable("body."+db.Short(name), "there is no such part of an import; leave it out")
		case repeated:
			return file, nil, rest.Unprocessable("body."+name, "the part is there twice; send one")
		}
		text, err := io.ReadAll(io.LimitReader(part, budget+1))
		if err != nil {
			return file, nil, brokenBody(err)
		}
		if budget -= int64(len(text)); budget < 0 {
			return file, nil, rest.PartTooLarge("What the body has besides the file", maxTextBytes)
		}
		texts[name] = string(text)
	}
	if file == nil {
		return nil, nil, rest.Unprocessable("body.file", "expected a part named 'file' with the agents")
	}
	return file, texts, nil
}

// importOptions reads the text parts of a form. It refuses a part that an import cannot honour.
func importOptions(texts map[string]string) (o agentfile.ImportOptions, err error) {
	for name, text := range texts {
		if slices.Contains(refusedParts, name) && text != "" {
			return o, rest.Unprocessable("body."+name, "this server has no projects; leave it out")
		}
		if slices.Contains(secretParts, name) && text != "" {
			if err := checkNoSecrets("body."+name, text); err != nil {
				return o, err
			}
		}
	}
	first := func(names []string) *string {
		for _, name := range names {
			if texts[name] != "" {
				return new(texts[name])
			}
		}
		return nil
	}
	o.Model, o.Embedding = first(modelParts), first(embeddingParts)
	if name := first(nameParts); name != nil {
		o.Name = *name
	}
	override, err := formFlag("body.override_existing_tools", texts["override_existing_tools"])
	if err != nil {
		return o, err
	}
	o.KeepTools = texts["override_existing_tools"] != "" && !override
	if o.CopySuffix, err = formFlag("body.append_copy_suffix", texts["append_copy_suffix"]); err != nil {
		return o, err
	}
	o.NoMessages, err = formFlag("body.strip_messages", texts["strip_messages"])
	return o, err
}

func checkNoSecrets(place, text string) error {
	var secrets map[string]any
	if err := json.Unmarshal([]byte(text), &secrets); err != nil {
		return rest.Unprocessable(place, "expected a JSON object")
	}
	if len(secrets) > 0 {
		return rest.Unprocessable(place, "this server runs no custom tools and stores no secrets; leave it out")
	}
	return nil
}
