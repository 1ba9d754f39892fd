package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"mime"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/loci-memory/loci/cmd/loci/web"
	"github.com/loci-memory/loci/files"
)

// webPage is where a mirrored file comes from.
type webPage struct {
	pageNote

	hash        string // of its content
	from        string // ID of the file that is stored of it; empty: none
	isUnchanged bool   // since it was stored; its content was not read
}

// pageNote is what the metadata of a file say of the page that it holds.
type pageNote struct {
	URL       string `json:"url"`                 // where the page is for good
	Listed    string `json:"listed,omitempty"`    // the URL in the list, if that is another one
	MediaType string `json:"mediaType,omitempty"` // as declared
	web.Validators
}

// noteKey is the key of a pageNote in the metadata of a file.
const noteKey = "web"

// noteOf returns what the metadata of a file say of its page. Its URL is empty if they say nothing.
func noteOf(f files.File) pageNote {
	var metadata map[string]json.RawMessage
	var note pageNote
	if json.Unmarshal(f.Metadata, &metadata) != nil || json.Unmarshal(metadata[noteKey], &note) != nil {
		return pageNote{}
	}
	return note
}

// metadata returns the metadata of a file with the page, which keep what else those of a stored file say.
func (p *webPage) metadata(old files.File) map[string]any {
	metadata := map[string]any{}
	var kept map[string]json.RawMessage
	if json.Unmarshal(old.Metadata, &kept) == nil {
		for key, value := range maps.All(kept) {
			metadata[key] = value
		}
	}
	metadata[noteKey] = p.pageNote
	return metadata
}

// isNoted reports whether the metadata of a file say what is known of the page.
func (p *webPage) isNoted(f files.File) bool { return noteOf(f) == p.pageNote }

// is reports whether a stored file is the page's.
func (p *webPage) is(f files.File) bool { return p != nil && p.from == f.ID }

// storedAs returns the page's file among those that are stored, or nil.
func (p *webPage) storedAs(stored []files.File) *files.File {
	if i := slices.IndexFunc(stored, p.is); i >= 0 {
		return &stored[i]
	}
	return nil
}

// pageName returns the name of a page's file: its host and path, and its query behind a question mark. A page of HTML
// gets the extension .html unless it has it, because other extensions stand for source code.
func pageName(address, mediaType string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	name := u.Host + u.Path
	if strings.HasSuffix(name, "/") {
		name += "index"
	}
	if u.RawQuery != "" {
		query, err := url.QueryUnescape(u.RawQuery)
		if err != nil {
			query = u.RawQuery
		}
		name += "?" + strings.ReplaceAll(query, "/", "_")
	}
	extension := strings.ToLower(path.Ext(u.Path))
	if bare, _, _ := mime.ParseMediaType(mediaType); bare == "text/html" || bare == "application/xhtml+xml" {
		if !slices.Contains([]string{".html", ".htm", ".xhtml"}, extension) || u.RawQuery != "" {
			name, extension = name+".html", ".html"
		}
	}
	if runes := []rune(name); len(runes) > files.NameChars { // the end differs where the beginning does not
		sum := sha256.Sum256([]byte(address))
		if len(extension) > 8 {
			extension = ""
		}
		name = string(runes[:files.NameChars-40]) + "…" + hex.EncodeToString(sum[:8]) + extension
	}
	return name
}
