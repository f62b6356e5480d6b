import { Menu } from '@mantine/core'
import { IconDots, IconLink } from '@tabler/icons-react'
import { useState } from 'react'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { ask } from '../../api/client'
import type { DataEntity } from '../../api/admin'
import { asError } from '../../api/error'
import { useMay } from '../../app/session'
import { ConfirmDestroy } from '../../ui/confirm'
import { IconButton } from '../../ui/button'
import { IdChip, useCopy } from '../../ui/copy'
import { Drawer, type DrawerTab } from '../../ui/drawer'
import { Person } from '../../ui/face'
import { Empty, ErrorState, Skeleton } from '../../ui/states'
import { Time } from '../../ui/time'
import { toast } from '../../ui/toast'
import { FieldsTab } from './fields-tab'
import { RequestsTab } from './requests-tab'
import { titleOf, useLabels, useLook, type Look, textOf } from './queries'
import { UseTab } from './use-tab'
import { WhoTab } from './who-tab'

interface Props { entity: DataEntity; roles: readonly string[]; id: string; onClose: () => void; onStep?: ((by: 1 | -1) => void) | undefined }

/** RecordDrawer shows one record: its fields, who sees it, its requests, and how to use it. */
export function RecordDrawer({ entity, roles, id, onClose, onStep }: Props) {
  const query = useLook(entity.name, id)
  const error = query.error ? asError(query.error) : undefined
  if (error || !query.data) {
    return (
      <Drawer title={entity.name} label={`${entity.name} ${id}`} sub={<IdChip id={id} />} onClose={onClose} onStep={onStep}>
        {error?.isMissing
          ? <Empty title="There is no such record" arch="shut">It was deleted, or it is not open to you: both are answered alike.</Empty>
          : error ? <ErrorState what="The record could not be loaded." error={error} onRetry={() => void query.refetch()} /> : <Skeleton rows={8} label="Loading the record" />}
      </Drawer>
    )
  }
  return <Loaded entity={entity} roles={roles} id={id} look={query.data} onClose={onClose} onStep={onStep} />
}

function Loaded({ entity, roles, id, look, onClose, onStep }: Props & { look: Look }) {
  const title = titleOf(entity, look.row)
  const asks = useMay(['manage_users', 'manage_permissions'])
  const [deleting, setDeleting] = useState(false)
  const { copied, copy } = useCopy()
  const owner = textOf(look.row['owner_id'])
  const labelOf = useLabels('user', owner ? [owner] : [])
  const tabs: DrawerTab[] = [
    { key: 'fields', label: 'Fields', content: () => <FieldsTab entity={entity} id={id} look={look} /> },
    { key: 'who', label: 'Who sees it', content: () => <WhoTab entity={entity} roles={roles} id={id} look={look} asks={asks} /> },
    { key: 'requests', label: 'Requests', content: () => <RequestsTab id={id} /> },
    { key: 'changes', label: 'Changes', content: () => <RequestsTab id={id} changes /> },
    { key: 'use', label: 'Use it', content: () => <UseTab entity={entity} id={id} look={look} /> },
  ]
  return (
    <>
      <Drawer title={title} label={`${entity.name} ${title}`} tabs={tabs} onClose={onClose} onStep={onStep}
        sub={<><IdChip id={id} />{owner && <span className="row">{labelOf(owner) ? <Person name={labelOf(owner) ?? owner} /> : <>owner <IdChip id={owner} short label="owner" /></>}</span>}<span className="muted">changed <Time at={textOf(look.row['updated_at'])} /></span></>}
        acts={
          <>
            <IconButton small label={copied ? 'Copied' : 'Copy link'} onClick={() => void copy(window.location.href)}><IconLink size={16} stroke={1.7} aria-hidden /></IconButton>
            {look.meta.may.delete && (
              <Menu position="bottom-end">
                <Menu.Target><IconButton small label="More"><IconDots size={16} stroke={1.7} aria-hidden /></IconButton></Menu.Target>
                <Menu.Dropdown><Menu.Item color="red" onClick={() => { setDeleting(true) }}>Delete {entity.name}…</Menu.Item></Menu.Dropdown>
              </Menu>
            )}
          </>
        } />
      {deleting && <DeleteRecord entity={entity} id={id} title={title} onClose={() => { setDeleting(false) }} onDone={onClose} />}
    </>
  )
}

function DeleteRecord({ entity, id, title, onClose, onDone }: { entity: DataEntity; id: string; title: string; onClose: () => void; onDone: () => void }) {
  const client = useQueryClient()
  const remove = useMutation({
    mutationFn: () => ask('DELETE data/{entity}/{id}', { params: { entity: entity.name, id } }),
    onSuccess: () => {
      onDone()
      client.removeQueries({ queryKey: ['data', 'record', entity.name, id] })
      void client.invalidateQueries({ queryKey: ['data', 'list', entity.name] })
      void client.invalidateQueries({ queryKey: ['data', 'count', entity.name] })
      toast.show({ text: <>Deleted {title}</> })
    },
  })
  return (
    <ConfirmDestroy title={`Delete ${title}`} action={`Delete ${entity.name}`} busy={remove.isPending} error={remove.error ? asError(remove.error) : undefined} onConfirm={() => { remove.mutate() }} onClose={onClose}>
      <p>The record goes for good, with its shares. References to it are cleared.</p>
    </ConfirmDestroy>
  )
}
