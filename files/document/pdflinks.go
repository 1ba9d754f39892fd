package document

import (
	"strings"

	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
)

// pageLink is a link of a page to somewhere on the web. A link over two lines is often two annotations.
type pageLink struct {
	target, label string
	at            box
}

// link adds a link to those of the page.
func (t *pdfText) link(a references.FPDF_ANNOTATION, all *[]pageLink) {
	target := t.targetOf(a)
	if target == "" || t.isHidden(a) {
		return
	}
	link := pageLink{target, t.within(t.boxOf(a)), t.boxOf(a)}
	if n := len(*all); n > 0 && (*all)[n-1].target == target {
		link.label = (*all)[n-1].label + link.label
		*all = (*all)[:n-1]
	}
	*all = append(*all, link)
}

// targetOf returns the address to which an annotation leads, or "".
func (t *pdfText) targetOf(a references.FPDF_ANNOTATION) string {
	link, err := t.FPDFAnnot_GetLink(&requests.FPDFAnnot_GetLink{Annotation: a})
	if err != nil {
		return ""
	}
	action, err := t.FPDFLink_GetAction(&requests.FPDFLink_GetAction{Link: link.Link})
	if err != nil || action.Action == nil {
		return ""
	}
	uri, err := t.FPDFAction_GetURIPath(&requests.FPDFAction_GetURIPath{Document: t.doc, Action: *action.Action})
	if err != nil || uri.URIPath == nil || !isAddress(*uri.URIPath) {
		return ""
	}
	return withoutBlanks(strings.ToValidUTF8(*uri.URIPath, "\ufffd"))
}

// targets returns the addresses of links that their labels do not show.
func targets(links []pageLink) (all []placed) {
	for _, link := range links {
		bare := link.target
		for _, prefix := range []string{"mailto:", "tel:", "https://", "http://", "www."} {
			bare = strings.TrimPrefix(bare, prefix)
		}
		bare = strings.ToLower(strings.TrimRight(bare, "/"))
		if label := strings.ToLower(withoutBlanks(link.label)); bare == "" || strings.Contains(label, bare) {
			continue
		}
		all = append(all, placed{text: "(" + link.target + ")", name: link.label, at: link.at, isLink: true})
	}
	return all
}
