package agentfile

// The lists of Letta's format.
const (
	listAgents  = "agents"
	listGroups  = "groups"
	listBlocks  = "blocks"
	listFiles   = "files"
	listSources = "sources"
	listTools   = "tools"
	listServers = "mcp_servers"
	listSkills  = "skills"
)

// The lists of a full file. Their ids are those in the database. Items with the same owner stand together, in the order
// of the owners: the versions of the first block come before the versions of the second.
const (
	listOwnBlocks     = "loci_blocks"
	listVersions      = "loci_block_versions"
	listArchives      = "loci_archives"
	listPassages      = "loci_passages"
	listFolders       = "loci_folders"
	listOwnFiles      = "loci_files"
	listOriginals     = "loci_originals"
	listViews         = "loci_open_files"
	listConversations = "loci_conversations"
	listMessages      = "loci_messages"
	listKept          = "loci_kept_results"
	listCompactions   = "loci_compactions"
	listEvents        = "loci_events"
	listConsumers     = "loci_event_consumers"
	listIdentities    = "loci_identities"

	listWorking         = "loci_working_memories"
	listWorkingVersions = "loci_working_memory_versions"
	listTrees           = "loci_memory_trees"
	listTreeFiles       = "loci_memory_files"
	listTreeVersions    = "loci_memory_file_versions"
)

var fullLists = []string{listOwnBlocks, listVersions, listArchives, listPassages, listFolders, listOwnFiles,
	listOriginals, listViews, listConversations, listMessages, listKept, listCompactions,
	listEvents, listConsumers, listIdentities, listWorking, listWorkingVersions, listTrees, listTreeFiles,
	listTreeVersions}

// piece is a part of a file's original. The pieces of a file, joined in order, are the original.
type piece struct {
	FileID string `json:"file_id"`
	Bytes  []byte `json:"bytes"` // in base64
}
