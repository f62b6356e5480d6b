import { IconDownload, IconUpload } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { ask } from '../../api/client'
import { asError } from '../../api/error'
import { useSession } from '../../app/session'
import { paths } from '../../app/paths'
import { Button } from '../../ui/button'
import { CodeBlock } from '../../ui/code'
import { Page } from '../../ui/page'
import { save } from '../../ui/save'
import { ErrorState, Skeleton } from '../../ui/states'
import { useGo } from '../../ui/url'
import { useWork, WorkNote } from './work'

/** Configuration shows the manifest as it stands, to read and to download. */
export default function Configuration() {
  const session = useSession()
  const go = useGo()
  const work = useWork()
  const query = useQuery({ queryKey: ['config', 'manifest'], queryFn: ({ signal }) => ask('GET config/manifest', { signal }) })
  const text = query.data?.text ?? ''
  const download = () => { save(`${session.tenant.id}.yaml`, [text], 'application/yaml') }
  return (
    <Page title="Configuration" count={query.data && `version ${query.data.version}, ${text.split('\n').length - 1} lines`}
      hint="The manifest: all of the tenant’s configuration, without secrets and passwords. Applying it changes nothing."
      acts={<>
        <Button icon={<IconDownload size={16} stroke={1.7} aria-hidden />} disabled={!query.data} onClick={download}>Download</Button>
        <Button kind="main" icon={<IconUpload size={16} stroke={1.7} aria-hidden />} onClick={() => { go(paths.plan()) }}>Apply a manifest</Button>
      </>}>
      <WorkNote work={work.data} />
      {query.error && <ErrorState what="The manifest could not be loaded." error={asError(query.error)} onRetry={() => { void query.refetch() }} />}
      {!query.data && !query.error && <Skeleton label="Loading the manifest" rows={14} />}
      {query.data && <CodeBlock text={text} language="yaml" title="The manifest as it stands" />}
    </Page>
  )
}
