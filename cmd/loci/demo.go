package main

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"io/fs"
	"net"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
)

//go:embed demo/*.md
var demo embed.FS

// demoOrg is the organization of a server without keys: the first one, which a migration creates.
const demoOrg = db.Org(1)

const (
	demoFolder = "guide"
	demoAgent  = "demo"
)

// seed fills an empty database with a folder of documents about Loci, and an agent with that folder.
func seed(ctx context.Context, store *files.Store, agents *agent.Store) error {
	folders, err := store.CountFolders(ctx, demoOrg)
	if err != nil {
		return err
	}
	existing, err := agents.Count(ctx, demoOrg, agent.Filter{Hidden: true})
	if err != nil || folders+existing > 0 {
		return err
	}
	description := "How to use Loci: uploading documents, searching them, and what an agent can do with them."
	folder, err := store.CreateFolder(ctx, demoOrg, files.NewFolder{Name: demoFolder, Description: &description})
	if err != nil {
		return err
	}
	documents, err := fs.Glob(demo, "demo/*.md")
	for i := 0; err == nil && i < len(documents); i++ {
		var text []byte
		if text, err = demo.ReadFile(documents[i]); err == nil {
			_, _, err = store.Upload(ctx, demoOrg, folder.ID, files.Upload{Name: documents[i], Body: bytes.NewReader(text)})
		}
	}
	if err != nil {
		return err
	}
	_, err = agents.Create(ctx, demoOrg, agent.New{Name: demoAgent, FolderIDs: []string{folder.ID}})
	return err
}

// greet prints the server's URL. With --demo it also prints commands to try.
func (p *process) greet(addr string) {
	base := "http://" + addr
	if host, port, err := net.SplitHostPort(addr); err == nil && (host == "::" || host == "0.0.0.0") {
		base = "http://127.0.0.1:" + port
	}
	fmt.Fprintf(p.out.out, "Loci %s serves %s\n", version(), base)
	if !p.Demo {
		return
	}
	fmt.Fprintf(p.out.out, `
Try, in another terminal:

  AGENT=$(curl -s '%[1]s/v1/agents/?name=%[2]s' | grep -o 'agent-[0-9a-f-]*' | head -1)
  curl -s -X POST %[1]s/v1/agents/$AGENT/tools/semantic_search_files/run -d '{"args": {"query": "how to search files"}}'
  curl -s -X POST %[1]s/v1/agents/$AGENT/tools/grep_files/run -d '{"args": {"pattern": "curl"}}'

`, base, demoAgent)
}
