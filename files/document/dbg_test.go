package document_test

import (
	"bytes"
	"fmt"
	"github.com/loci-memory/loci/files/document"
	"os"
	"strings"
	"testing"
)

func TestDbg(t *testing.T) {
	for _, f := range strings.Fields(os.Getenv("DBG")) {
		raw, _ := os.ReadFile(f)
		mt, err := document.Sniff(f, "", bytes.NewReader(raw), int64(len(raw)))
		if err != nil {
			fmt.Println(f, err)
			continue
		}
		got, err := reader.Read(t.Context(), document.Input{MediaType: mt, SizeBytes: int64(len(raw)), Body: bytes.NewReader(raw)})
		fmt.Println("=====", f, err, "|", document.ListOmissions(got.Omitted), "|", got.Pages)
		fmt.Println(got.Text)
	}
}
